// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"context"
	"math/big"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
)

// An EVM executes messages without keeping what they change. It is safe for
// concurrent use.
//
// Where a message fails for reasons of its own the error is a *CallError; where
// ctx ended it, ctx's error. Any other error says that the outcome is not known.
type EVM interface {
	Call(context.Context, Scene, ethereum.CallMsg) (output []byte, err error)

	// EstimateGas returns a gas limit with which the message succeeds.
	EstimateGas(context.Context, Scene, ethereum.CallMsg) (uint64, error)

	// AccessList returns what the message touches, also where it fails: failure
	// is then the reason, and empty otherwise.
	AccessList(context.Context, Scene, ethereum.CallMsg) (list types.AccessList, gasUsed uint64, failure string, err error)

	// Precompiles returns the precompiled contracts in a block with this
	// header, by their names of EIP-7910.
	Precompiles(*types.Header) map[string]chain.Address
}

// A Scene is where a message is executed: in the block of Header, on the state
// Base.
type Scene struct {
	Header      *types.Header
	BlobBaseFee *big.Int // in place of the one that follows from Header; may be nil
	Base        chain.View

	// Ancestor returns the hash of an earlier block, zero where there is none of
	// that height on the chain of Header.
	Ancestor func(chain.Number) (chain.Hash, error)
}

// A CallError is why a message failed, in words for the caller.
type CallError struct {
	Message  string
	Reverted bool
	Revert   []byte // what the code gave with REVERT
}

func (e *CallError) Error() string { return e.Message }
