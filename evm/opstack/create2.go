// SPDX-License-Identifier: Apache-2.0

package opstack

import (
	_ "embed" // for create2Deployer

	"glimpse/chain"
)

// The block that brings Canyon puts this contract where it has on other chains,
// because on some an accident kept it from being deployed.
var create2DeployerAddress = chain.Address{
	0x13, 0xb0, 0xd8, 0x5c, 0xcb, 0x8b, 0xf8, 0x60, 0xb6, 0xb7,
	0x9a, 0xf3, 0x02, 0x9f, 0xca, 0x08, 0x1a, 0xe9, 0xbe, 0xf2,
}

//go:embed create2deployer.bin
var create2Deployer string
