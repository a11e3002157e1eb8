// SPDX-License-Identifier: Apache-2.0

package devchain

import (
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"

	"glimpse/chain"
)

// A Store is where the chain is kept. It has at least the genesis block, and it
// is used from one goroutine, that of Run. Any error ends Run.
type Store interface {
	// Head opens the last block that was committed. The Head is released
	// before the next is opened, and before Commit and Unwind.
	Head() (Head, error)

	// Hash, Header and Body return what is stored of the block of height n,
	// which is at most the head's. Header and body are RLP.
	Hash(n chain.Number) (chain.Hash, error)
	Header(n chain.Number) ([]byte, error)
	Body(n chain.Number) ([]byte, error)

	// Commit stores the block after the head, all of it or nothing (P5). What
	// Roots has to store for the block goes with it.
	Commit(*Sealed) error

	// Unwind takes the blocks above n away and Roots back with them.
	Unwind(n chain.Number) error

	// SetTags says which blocks are safe and finalized from now on.
	SetTags(safe, finalized chain.Ref) error
}

// A Head is the last block of a Store with its state.
type Head struct {
	chain.Ref
	View    chain.View
	Release func() // the View is not used afterwards
}

// Roots computes state roots and stands at the store's head. Apply puts a Diff on
// top of what it stands at and returns the root; Commit of the Store keeps it.
type Roots interface {
	Apply(*chain.Diff) (chain.Hash, error)
}

// A Listener is told what happens, in order, from the goroutine of Run, which
// goes on when the call returns: whoever waits for a transaction is answered
// after the Listener has seen it. A Listener must not call the Sequencer, and
// what it is given is shared and must not be modified.
//
// The Store changes before the Listener hears of it. A Listener that publishes
// the store's head only when it is called lets no reader see the middle of a
// reorg (P6).
type Listener interface {
	Preconfirmed(*Flashblock)
	Sealed(*Sealed)
	Reorganised(*Reorganisation)
}

// A Flashblock is what one interval adds to the block being built.
type Flashblock struct {
	// PayloadID names the build of the block: a block that is begun anew on the
	// same parent has another one.
	PayloadID [8]byte
	Index     uint64 // 0 begins a block

	// Header holds what is fixed for the block, and gas used, blob gas used,
	// bloom and receipts root of its transactions up to and including this
	// flashblock. Its state root is zero, its transactions root that of none,
	// and its hash means nothing.
	Header *types.Header

	// Transactions are those that this flashblock adds, Receipts theirs, with
	// zero block hash.
	Transactions []*types.Transaction
	Receipts     types.Receipts

	// Balances are those of all accounts that this flashblock touched.
	Balances map[chain.Address]uint256.Int
}

// A Sealed is a block that was sealed.
type Sealed struct {
	Block    *types.Block
	Diff     *chain.Diff
	Receipts types.Receipts // complete, with the block's hash

	// Flashblocks is how many pre-confirmed it.
	Flashblocks int

	// Revoked are the transactions that were pre-confirmed for this block and
	// are not in it: those that were revoked, and those that could not follow
	// without them.
	Revoked []chain.Hash
}

// Ref returns the block's number and hash.
func (s *Sealed) Ref() chain.Ref {
	return chain.Ref{Number: chain.Number(s.Block.NumberU64()), Hash: s.Block.Hash()}
}

// A Reorganisation is how the last blocks of the chain were replaced.
type Reorganisation struct {
	Ancestor chain.Ref   // the last block that stayed
	Removed  []chain.Ref // ascending, from the one after Ancestor
	Added    []*Sealed   // ascending, from the one after Ancestor
}
