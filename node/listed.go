// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"glimpse/chain"
	"glimpse/flashblock"
	"glimpse/follow/upstream"
	"glimpse/pending"
)

// listed takes what flashblocks changed from the access lists that they carry. It
// is for chains whose rules are not known here, or not needed: nothing is
// executed, and transactions and receipts are not looked at.
type listed struct{}

var (
	_ pending.Executor  = listed{}
	_ pending.Execution = listed{}
)

// errNoList says why there is no pre-confirmed state.
var errNoList = errors.New("the flashblock carries no access list, and is not executed here")

// Complete implements pending.Executor: what the feed does not carry is not known.
func (listed) Complete(header, _ *types.Header) {}

// Begin implements pending.Executor.
func (l listed) Begin(_, _ *types.Header, _ chain.View, _ func(chain.Number) (chain.Hash, error)) (pending.Execution, error) {
	return l, nil
}

// Commits implements pending.Executor. A list of the feed is the feed's word: what
// a sealed block changed is found out when it is there.
func (listed) Commits(*types.Header, types.Withdrawals) bool { return false }

// Transient implements pending.Executor: what is not about the list is about
// reading the state.
func (listed) Transient(err error) bool {
	return !errors.Is(err, upstream.ErrAccessList) && !errors.Is(err, errNoList)
}

// Apply implements pending.Execution.
func (listed) Apply(m *flashblock.Message, before chain.View) (*pending.Piece, error) {
	if m.AccessList == nil {
		return nil, errNoList
	}
	list, err := upstream.ParseAccessList(m.AccessList.Text, m.AccessList.Hash)
	if err != nil {
		return nil, err
	}
	done := &pending.Piece{Hashes: make([]chain.Hash, len(m.Delta.Transactions))}
	for i, raw := range m.Delta.Transactions {
		done.Hashes[i] = crypto.Keccak256Hash(raw)
	}
	done.Diff, err = upstream.AccessListDiff(list, before)
	return done, err
}

// Finish implements pending.Execution. Lists are about transactions; what comes
// after them and is in none would be missing from a block that follows.
func (listed) Finish(body *types.Body) (*chain.Diff, error) {
	if len(body.Withdrawals) > 0 {
		return nil, fmt.Errorf("%w: withdrawals are in none", upstream.ErrAccessList)
	}
	return new(chain.Diff), nil
}

// Diff implements pending.Execution. It is for blocks that Commits says are the
// sealed ones.
func (listed) Diff() (*chain.Diff, error) { return nil, errNoList }
