// SPDX-License-Identifier: Apache-2.0

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { getCreateAddress } from 'ethers'
import { from, initcode, key, run, url } from './flow.mjs'

const program = fileURLToPath(new URL('node_modules/.bin/cast', import.meta.url))
const exec = promisify(execFile)

async function cast(command, ...args) {
  const { stdout } = await exec(program, [command, '--rpc-url', url, ...args])
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
