// SPDX-License-Identifier: Apache-2.0

import { getCreateAddress } from 'ethers'
import { Web3 } from 'web3'
import { from, initcode, key, run, url } from './flow.mjs'

const web3 = new Web3(url)
web3.eth.transactionPollingInterval = 100
web3.eth.accounts.wallet.add(key)
const receipts = new Map()

// send resolves as soon as the hash is known; the receipt is awaited later.
function send(tx) {
  return new Promise((resolve, reject) => {
    const sending = web3.eth.sendTransaction({ from, ...tx })
    sending.on('transactionHash', hash => {
      receipts.set(hash, sending)
      resolve(hash)
    })
    sending.on('error', reject)
  })
}

await run('web3.js', {
  async deploy() {
    const nonce = Number(await web3.eth.getTransactionCount(from))
    return { hash: await send({ data: initcode }), address: getCreateAddress({ from, nonce }) }
  },
  store: (to, data) => send({ to, data }),
  async receipt(hash) {
    const r = await receipts.get(hash)
    return { status: Number(r.status) === 1, blockNumber: r.blockNumber }
  },
  code: (address, tag) => web3.eth.getCode(address, tag),
  slot: (address, tag) => web3.eth.getStorageAt(address, 0, tag),
  blockNumber: () => web3.eth.getBlockNumber(),
})
