// SPDX-License-Identifier: Apache-2.0

package evm

import (
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"

	"glimpse/chain"
)

// WithPrecompiles returns the same rules with other precompiled contracts: those
// that at returns for the time of a block, or Ethereum's where it returns nil. A
// table must not be modified once it was returned.
func (r *Rules) WithPrecompiles(at func(time uint64) vm.PrecompiledContracts) *Rules {
	other := *r
	other.precompiles = at
	return &other
}

// ownPrecompiles returns those at a time that are not Ethereum's, or nil.
func (r *Rules) ownPrecompiles(time uint64) vm.PrecompiledContracts {
	if r.precompiles == nil {
		return nil
	}
	return r.precompiles(time)
}

// allPrecompiles returns those in a block with this header.
func (r *Rules) allPrecompiles(h *types.Header) vm.PrecompiledContracts {
	if own := r.ownPrecompiles(h.Time); own != nil {
		return own
	}
	return vm.ActivePrecompiledContracts(r.config.Rules(h.Number, h.Difficulty.Sign() == 0, h.Time))
}

// Precompiles returns the precompiled contracts in a block with this header, by
// the names that EIP-7910 gives them.
func (r *Rules) Precompiles(header *types.Header) map[string]chain.Address {
	named := make(map[string]chain.Address)
	for addr, contract := range r.allPrecompiles(header) {
		named[contract.Name()] = addr
	}
	return named
}

// A warm StateDB begins transactions with addresses as accessed that go-ethereum
// does not know to be precompiles.
type warm struct {
	*state.StateDB
	precompiles []chain.Address // nil where they are Ethereum's
}

func newWarm(db *state.StateDB, own vm.PrecompiledContracts) warm {
	if own == nil {
		return warm{StateDB: db}
	}
	return warm{StateDB: db, precompiles: slices.Collect(maps.Keys(own))}
}

// Prepare begins a transaction or system call; the latter names no precompiles.
func (w warm) Prepare(rules params.Rules, sender, coinbase common.Address, to *common.Address, precompiles []common.Address, list types.AccessList) {
	if precompiles != nil && w.precompiles != nil {
		precompiles = w.precompiles
	}
	w.StateDB.Prepare(rules, sender, coinbase, to, precompiles, list)
}
