// SPDX-License-Identifier: Apache-2.0

package chaingen

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// store writes the (slot, value) pairs of the call data to storage and goes on
// behind the listing.
const store = `
	        0
	next:   CALLDATASIZE DUP2 LT ISZERO @done JUMPI
	        DUP1 32 ADD CALLDATALOAD
	        DUP2 CALLDATALOAD
	        SSTORE
	        64 ADD @next JUMP
	done:
`

// copyRest copies the call data behind the first word to memory and leaves its
// size on the stack.
const copyRest = `
	        32 CALLDATASIZE SUB
	        DUP1 32 0 CALLDATACOPY
`

var (
	// The storer stores and logs.
	storerCode = Assemble(store + `CALLDATASIZE 0 0 LOG1 STOP`)

	// The mortal stores, or destroys itself when called without data.
	mortalCode = Assemble(`CALLDATASIZE ISZERO @die JUMPI` + store + `STOP
	die:    CALLER SELFDESTRUCT`)

	// The reverter stores and takes it back.
	reverterCode = Assemble(store + `0 0 REVERT`)

	// The caller calls the contract in the first word with the rest, whatever
	// comes of it, and notes how that went and the parent's hash. The first line
	// puts an output of no size below the size of the input.
	callerCode = Assemble(copyRest + `
	        0 SWAP1 0 SWAP1
	        0 0
	        0 CALLDATALOAD 200000 CALL
	        NUMBER ADD 0 SSTORE
	        1 NUMBER SUB BLOCKHASH 1 SSTORE
	        STOP`)

	// The factory creates a contract with the salt in the first word and the
	// init code in the rest.
	factoryCode = Assemble(copyRest + `
	        0 CALLDATALOAD SWAP1 0 0 CREATE2
	        0 SSTORE STOP`)

	// The brief factory does the same and lets the contract destroy itself.
	briefCode = Assemble(copyRest + `
	        0 CALLDATALOAD SWAP1 0 0 CREATE2
	        0 0 0 0 0 DUP6 200000 CALL
	        STOP`)

	// A child begins with two slots set.
	childInit = Deployer(`7 1 SSTORE 9 2 SSTORE`, mortalCode)

	storerInit = Deployer(``, storerCode)
)

// Where the contracts are from genesis on.
var (
	storerAddr   = common.HexToAddress("0x1000000000000000000000000000000000000001")
	mortalAddr   = common.HexToAddress("0x1000000000000000000000000000000000000002")
	reverterAddr = common.HexToAddress("0x1000000000000000000000000000000000000003")
	callerAddr   = common.HexToAddress("0x1000000000000000000000000000000000000004")
	factoryAddr  = common.HexToAddress("0x1000000000000000000000000000000000000005")
	briefAddr    = common.HexToAddress("0x1000000000000000000000000000000000000006")
)

func contracts() types.GenesisAlloc {
	word := common.BigToHash
	return types.GenesisAlloc{
		storerAddr: {Code: storerCode, Balance: common.Big0, Storage: map[common.Hash]common.Hash{
			word(common.Big0): word(common.Big1),
			word(common.Big1): word(common.Big256),
		}},
		mortalAddr:   {Code: mortalCode, Balance: common.Big3, Storage: map[common.Hash]common.Hash{word(common.Big2): word(common.Big3)}},
		reverterAddr: {Code: reverterCode, Balance: common.Big0},
		callerAddr:   {Code: callerCode, Balance: common.Big0},
		factoryAddr:  {Code: factoryCode, Balance: common.Big0},
		briefAddr:    {Code: briefCode, Balance: common.Big0},
	}
}

// childAddr is where the factory puts the child with a salt.
func childAddr(salt byte) common.Address {
	return crypto.CreateAddress2(factoryAddr, [32]byte{31: salt}, crypto.Keccak256(childInit))
}
