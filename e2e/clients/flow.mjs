// SPDX-License-Identifier: Apache-2.0

// The flow that every client goes through, and what it needs from a client.

import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'

export const url = process.env.GLIMPSE_URL ?? 'http://127.0.0.1:8545'

// Where nothing is pre-confirmed, pending is latest.
const preconfirmed = !process.env.GLIMPSE_SEALED_ONLY

// The first account of the well-known test mnemonic.
export const key = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'
export const from = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'

// A contract whose constructor sets slot 0 to 42. Called with 32 bytes it
// stores them there, called without it returns them.
export const runtime = '0x36600c575f545f5260205ff35b5f355f5500'
export const initcode = '0x602a5f556012600e5f3960125ff3' + runtime.slice(2)

const word = n => '0x' + n.toString(16).padStart(64, '0')

// until counts attempts and not seconds: a machine that stands still for a while
// then costs one attempt, not all of them.
async function until(what, check) {
  for (let attempt = 0; attempt < 1000; attempt++) {
    const value = await check()
    if (value !== undefined) return value
    await delay(20)
  }
  assert.fail(`asked 1,000 times for ${what}: ${await told()}`)
}

const sent = [] // the hashes of what was sent

// told is what the node says of itself and of the sender, for a failure.
async function told() {
  const ask = async (method, ...params) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const answer = await fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body })
    return `${method} ${params.join(' ')}: ${await answer.text()}`
  }
  return (await Promise.all([
    ask('glimpse_status'),
    ask('eth_getTransactionCount', from, 'latest'),
    ask('eth_getTransactionCount', from, 'pending'),
    ...sent.map(hash => ask('eth_getTransactionByHash', hash)),
    ...sent.map(hash => ask('eth_getTransactionReceipt', hash)),
  ])).join('\n')
}

// run takes a client:
//   deploy()            sends the deployment, returns {hash, address}
//   store(address, w)   sends a call that stores the word w, returns its hash
//   receipt(hash)       waits for the receipt the way the client does, returns {status, blockNumber}
//   code(address, tag), slot(address, tag), blockNumber()
export async function run(name, client) {
  // Right after a block seals there are almost two seconds until the next.
  const fresh = async () => {
    const n = Number(await client.blockNumber())
    return until('a new block', async () => {
      const now = Number(await client.blockNumber())
      return now > n ? now : undefined
    })
  }

  // What is pre-confirmed does not show on latest. On a machine that is so slow
  // that another block was sealed meanwhile, nothing can be said.
  const notOnLatest = async (block, what, read, want) => {
    if (!preconfirmed) return
    const value = await read()
    if (Number(await client.blockNumber()) === block) assert.equal(value, want, `${what} is on latest before its block sealed`)
  }

  let block = await fresh()
  let start = Date.now()
  const { hash, address } = await client.deploy()
  sent.push(hash)
  const code = await until(`the code of ${address} on pending`, async () => {
    const c = await client.code(address, 'pending')
    return c && c !== '0x' ? c : undefined
  })
  const deployed = Date.now() - start
  assert.equal(code, runtime)
  await notOnLatest(block, 'the code', async () => (await client.code(address, 'latest')) ?? '0x', '0x')
  assert.equal(await client.slot(address, 'pending'), word(42))
  const first = await client.receipt(hash)
  assert.ok(first.status, 'the deployment failed')
  await until('the code on latest', async () => ((await client.code(address, 'latest')) === runtime ? true : undefined))

  block = await fresh()
  start = Date.now()
  const stored = await client.store(address, word(7))
  sent.push(stored)
  await until('the slot on pending', async () => ((await client.slot(address, 'pending')) === word(7) ? true : undefined))
  const changed = Date.now() - start
  await notOnLatest(block, 'the slot', () => client.slot(address, 'latest'), word(42))
  const second = await client.receipt(stored)
  assert.ok(second.status, 'the call failed')
  await until('the slot on latest', async () => ((await client.slot(address, 'latest')) === word(7) ? true : undefined))

  console.log(`ok ${name}: code on pending after ${deployed} ms, slot after ${changed} ms, sealed in blocks ${first.blockNumber} and ${second.blockNumber}`)
}
