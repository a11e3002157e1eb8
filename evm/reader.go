// SPDX-License-Identifier: Apache-2.0

package evm

import (
	"errors"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/triedb"

	"glimpse/chain"
)

// A reader lets go-ethereum's StateDB read a chain.View. Neither the StateDB nor
// the EVM stops at a failed read: they go on with a zero. So the reader keeps
// the first error, and whoever runs the EVM must look at it before believing
// any outcome.
type reader struct {
	view   chain.View
	err    error
	cancel func() // ends the EVM's run early, since it is void after an error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
		r.cancel()
	}
}

func (r *reader) Account(addr common.Address) (*types.StateAccount, error) {
	account, err := r.view.Account(addr)
	if err != nil {
		r.fail(err)
		return nil, err
	}
	if !account.Exists {
		return nil, nil // how state.StateReader spells absence
	}
	codeHash := account.CodeHash
	if codeHash == (chain.Hash{}) {
		codeHash = types.EmptyCodeHash
	}
	return &types.StateAccount{
		Nonce:    account.Nonce,
		Balance:  &account.Balance,
		Root:     types.EmptyRootHash, // never asked for: no tries are opened
		CodeHash: codeHash.Bytes(),
	}, nil
}

func (r *reader) Storage(addr common.Address, slot common.Hash) (common.Hash, error) {
	value, err := r.view.Slot(addr, slot)
	if err != nil {
		r.fail(err)
		return common.Hash{}, err
	}
	return value, nil
}

func (r *reader) Code(_ common.Address, hash common.Hash) []byte {
	code, err := r.view.Code(hash)
	if err != nil {
		r.fail(err)
		return nil
	}
	return code
}

func (r *reader) CodeSize(addr common.Address, hash common.Hash) int {
	return len(r.Code(addr, hash))
}

func (r *reader) Has(addr common.Address, hash common.Hash) bool {
	return len(r.Code(addr, hash)) > 0
}

// noTries is the state.Database of a StateDB that only ever reads through its
// reader and is never committed.
type noTries struct{}

var errNoTries = errors.New("state without tries")

func (noTries) Type() state.DatabaseType { return state.TypeMPT }

func (noTries) Reader(common.Hash) (state.Reader, error) { return nil, errNoTries }

func (noTries) Iteratee(common.Hash) (state.Iteratee, error) { return nil, errNoTries }

func (noTries) OpenTrie(common.Hash) (state.Trie, error) { return nil, errNoTries }

func (noTries) OpenStorageTrie(common.Hash, common.Address, common.Hash, state.Trie) (state.Trie, error) {
	return nil, errNoTries
}

func (noTries) TrieDB() *triedb.Database { return nil }

func (noTries) Commit(*state.StateUpdate) error { return errNoTries }
