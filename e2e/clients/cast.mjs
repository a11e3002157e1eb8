// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { getCreateAddress } from 'ethers'
import { from, initcode, key, run, url } from './flow.mjs'

const program = fileURLToPath(new URL('node_modules/.bin/cast', import.meta.url))
const exec = promisify(execFile)

// cast as npm has it is a script that ends well though the program it starts does
// not; one that failed has written nothing but its error.
async function cast(command, ...args) {
  const { stdout, stderr } = await exec(program, [command, '--rpc-url', url, ...args])
  assert.notEqual(stdout, '', `cast ${command}: ${stderr}`)
  return stdout.trim()
}

await run('cast', {
  async deploy() {
    const nonce = Number(await cast('nonce', from))
    const hash = await cast('send', '--async', '--private-key', key, '--create', initcode)
    return { hash, address: getCreateAddress({ from, nonce }) }
  },
  store: (to, data) => cast('send', '--async', '--private-key', key, to, data),
  async receipt(hash) {
    const r = JSON.parse(await cast('receipt', hash, '--json'))
    return { status: Number(r.status) === 1, blockNumber: Number(r.blockNumber) }
  },
  code: (address, tag) => cast('code', address, '--block', tag),
  slot: (address, tag) => cast('storage', address, '0', '--block', tag),
  blockNumber: () => cast('block-number'),
})
