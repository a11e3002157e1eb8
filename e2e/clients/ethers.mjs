// SPDX-License-Identifier: Apache-2.0

import { JsonRpcProvider, Wallet, getCreateAddress } from 'ethers'
import { initcode, key, run, url } from './flow.mjs'

const provider = new JsonRpcProvider(url, undefined, { cacheTimeout: -1, pollingInterval: 100 })
const wallet = new Wallet(key, provider)

await run('ethers', {
  async deploy() {
    const tx = await wallet.sendTransaction({ data: initcode })
    return { hash: tx.hash, address: getCreateAddress(tx) }
  },
  store: async (to, data) => (await wallet.sendTransaction({ to, data })).hash,
  async receipt(hash) {
    const r = await provider.waitForTransaction(hash)
    return { status: r.status === 1, blockNumber: r.blockNumber }
  },
  code: (address, tag) => provider.getCode(address, tag),
  slot: (address, tag) => provider.getStorage(address, 0, tag),
  blockNumber: () => provider.getBlockNumber(),
})
provider.destroy()
