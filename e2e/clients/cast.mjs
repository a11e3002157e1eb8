// SPDX-License-Identifier: Apache-2.0

import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { promisify } from 'node:util'
import { BINARY_NAME, PLATFORM_SPECIFIC_PACKAGE_NAME } from '@foundry-rs/cast/const.mjs'
import { getCreateAddress } from 'ethers'
import { from, initcode, key, run, url } from './flow.mjs'

// The program itself: the script around it ends well though the program does not.
const program = createRequire(import.meta.url).resolve(
  `${PLATFORM_SPECIFIC_PACKAGE_NAME('cast')}/bin/${BINARY_NAME('cast')}`)
const exec = promisify(execFile)

// It takes what it is told on its command line and nothing from the environment,
// where CHAIN, say, would be another chain to it.
async function cast(command, ...args) {
  const { stdout } = await exec(program, [command, '--rpc-url', url, ...args], { env: {} })
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
