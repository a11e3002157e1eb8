// SPDX-License-Identifier: Apache-2.0

import { createPublicClient, createWalletClient, getContractAddress, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { foundry } from 'viem/chains'
import { initcode, key, run, url } from './flow.mjs'

const account = privateKeyToAccount(key)
const reads = createPublicClient({ chain: foundry, transport: http(url), pollingInterval: 100 })
const wallet = createWalletClient({ account, chain: foundry, transport: http(url) })

await run('viem', {
  async deploy() {
    const nonce = await reads.getTransactionCount({ address: account.address })
    const hash = await wallet.deployContract({ abi: [], bytecode: initcode })
    return { hash, address: getContractAddress({ from: account.address, nonce: BigInt(nonce) }) }
  },
  store: (address, data) => wallet.sendTransaction({ to: address, data }),
  async receipt(hash) {
    const r = await reads.waitForTransactionReceipt({ hash })
    return { status: r.status === 'success', blockNumber: r.blockNumber }
  },
  code: (address, blockTag) => reads.getCode({ address, blockTag }),
  slot: (address, blockTag) => reads.getStorageAt({ address, slot: '0x0', blockTag }),
  blockNumber: () => reads.getBlockNumber({ cacheTime: 0 }),
})
