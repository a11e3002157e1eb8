// SPDX-License-Identifier: Apache-2.0

package evm

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"

	"glimpse/chain"
)

// A recorder is the StateDB that the EVM writes to. It notes which accounts and
// slots were written and what they held before; which writes stand after
// reverts and deletions is the StateDB's business, and is read back at the end.
//
// Every method that writes to an account or slot must be overridden here. The
// values noted are ones that the same write reads anyway: a further read would
// show in the access list of EIP-7928, and might fail.
type recorder struct {
	warm

	delta changes         // since the last call of take
	open  []chain.Address // written to since the last Finalise
}

// A change is what an account held before it was written to.
type change struct {
	before chain.Account
	slots  map[chain.Slot]chain.Value

	// destroyed says that the account has not existed at the end of some
	// transaction since, so that its storage from before is void.
	destroyed bool

	open bool // the address is in recorder.open
}

type changes map[chain.Address]*change

func newRecorder(r *reader, own vm.PrecompiledContracts) (*recorder, error) {
	db, err := state.NewWithReader(types.EmptyRootHash, noTries{}, r)
	if err != nil {
		return nil, err
	}
	return &recorder{warm: newWarm(db, own), delta: make(changes)}, nil
}

func (r *recorder) touch(addr chain.Address) *change {
	c := r.delta[addr]
	if c == nil {
		c = &change{before: r.account(addr)}
		r.delta[addr] = c
	}
	if !c.open {
		c.open = true
		r.open = append(r.open, addr)
	}
	return c
}

// account returns what the StateDB holds of addr now.
func (r *recorder) account(addr chain.Address) chain.Account {
	if !r.Exist(addr) {
		return chain.Account{}
	}
	account := chain.Account{
		Exists:   true,
		Nonce:    r.GetNonce(addr),
		Balance:  *r.GetBalance(addr),
		CodeHash: r.GetCodeHash(addr),
	}
	if account.CodeHash == types.EmptyCodeHash {
		account.CodeHash = chain.Hash{}
	}
	return account
}

func (r *recorder) CreateAccount(addr common.Address) {
	r.touch(addr)
	r.StateDB.CreateAccount(addr)
}

func (r *recorder) CreateContract(addr common.Address) {
	r.touch(addr)
	r.StateDB.CreateContract(addr)
}

func (r *recorder) AddBalance(addr common.Address, amount *uint256.Int, why tracing.BalanceChangeReason) uint256.Int {
	r.touch(addr)
	return r.StateDB.AddBalance(addr, amount, why)
}

func (r *recorder) SubBalance(addr common.Address, amount *uint256.Int, why tracing.BalanceChangeReason) uint256.Int {
	r.touch(addr)
	return r.StateDB.SubBalance(addr, amount, why)
}

func (r *recorder) SetNonce(addr common.Address, nonce uint64, why tracing.NonceChangeReason) {
	r.touch(addr)
	r.StateDB.SetNonce(addr, nonce, why)
}

func (r *recorder) SetCode(addr common.Address, code []byte, why tracing.CodeChangeReason) []byte {
	r.touch(addr)
	return r.StateDB.SetCode(addr, code, why)
}

func (r *recorder) SetState(addr common.Address, slot, value common.Hash) common.Hash {
	c := r.touch(addr)
	before := r.StateDB.SetState(addr, slot, value)
	if _, noted := c.slots[slot]; !noted {
		if c.slots == nil {
			c.slots = make(map[chain.Slot]chain.Value)
		}
		c.slots[slot] = before
	}
	return before
}

func (r *recorder) SelfDestruct(addr common.Address) {
	r.touch(addr)
	r.StateDB.SelfDestruct(addr)
}

// Finalise ends a transaction or system call. An account that was written to
// and is gone afterwards was destroyed by it.
func (r *recorder) Finalise(rules params.Rules) *bal.ConstructionBlockAccessList {
	list := r.StateDB.Finalise(rules)
	for _, addr := range r.open {
		c := r.delta[addr]
		c.open = false
		if !r.Exist(addr) {
			c.destroyed = true
		}
	}
	r.open = r.open[:0]
	return list
}

// take returns what was written since the last call and starts anew. Accounts
// that are still open, as after the DAO fork, are part of what comes next too:
// the Finalise that ends them may destroy them.
func (r *recorder) take() changes {
	taken, open := r.delta, r.open
	r.delta, r.open = make(changes), nil
	for _, addr := range open {
		taken[addr].open = false
		r.touch(addr)
	}
	return taken
}
