// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/flashblock"
)

// An Executor knows the rules of the chain.
type Executor interface {
	// Complete sets the fields of a header that a feed does not carry and that
	// follow from the parent's, such as the excess blob gas, and takes out those
	// that the block's fork does not have.
	Complete(header, parent *types.Header)

	// Begin opens a block on the state after parent. A parent that is not sealed
	// has no meaningful hash; that of header.ParentHash holds. The ancestors are
	// for blocks below the parent.
	Begin(header, parent *types.Header, base chain.View, ancestors func(chain.Number) (chain.Hash, error)) (Execution, error)

	// Commits reports whether the header of a sealed block commits to these
	// withdrawals, and to what its transactions did when they were executed here;
	// never where they were not.
	Commits(*types.Header, types.Withdrawals) bool

	// Transient reports whether an error of Begin or of an Execution says nothing
	// about the block, such as that of a state read, so that it may be executed
	// again. All others mean that the block is invalid or its rules unknown.
	Transient(error) bool
}

// An Execution is one block being executed. After an error it is dropped.
type Execution interface {
	// Apply executes the next flashblock on the state before it. The first call
	// also returns what the beginning of the block changed.
	Apply(m *flashblock.Message, before chain.View) (*Piece, error)

	// Finish executes what follows the last transaction. Of the body only the
	// withdrawals are looked at.
	Finish(*types.Body) (*chain.Diff, error)

	// Diff returns all that the block changed so far.
	Diff() (*chain.Diff, error)
}

// A Piece is what some transactions of a block did.
type Piece struct {
	Diff   *chain.Diff
	Hashes []chain.Hash // of the transactions

	// Transactions are nil where go-ethereum does not know their type.
	Transactions []*types.Transaction

	// Receipts has one for each, and Encoded the same as the receipts root is
	// made of them. Both are nil where nothing was executed: then there is nothing
	// to compare with what the feed says of them.
	Receipts types.Receipts
	Encoded  types.DerivableList
}

// A Sealed is the newest sealed block with its state, as it is at one moment.
type Sealed interface {
	Head() chain.Ref
	Header() *types.Header
	View() chain.View // of the state after Head

	// Hash returns the hash of the block of height n below Head.
	Hash(n chain.Number) (chain.Hash, error)

	// Release is called once, when nothing of it is used any more.
	Release()
}

// An anchor counts the users of a Sealed: the tracker, while it is the newest,
// and every block whose execution reads from it.
type anchor struct {
	Sealed
	users int
}

func (a *anchor) hold() *anchor {
	a.users++
	return a
}

func (a *anchor) drop() {
	if a.users--; a.users == 0 {
		a.Release()
	}
}
