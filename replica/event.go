// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
)

// An Identity says which chain an event is about.
type Identity struct {
	ChainID uint64
	Genesis chain.Hash
}

// String names the chain for people.
func (i Identity) String() string {
	return fmt.Sprintf("chain %d with genesis %s", i.ChainID, i.Genesis)
}

// An Event is one thing that a writer tells its replicas. It is immutable.
type Event struct {
	Chain Identity

	// Epoch is that of the writer. Each start of a writer has a higher one than
	// all before, so that what a writer says that was replaced can be told from
	// what its successor says.
	Epoch uint64

	// Order counts from 1 in an epoch, by itself for durable events and for
	// Pending. One that is missing shows, and one that comes twice too. The
	// first durable one of an epoch is an Unwound.
	Order uint64

	// Body is what happened: *Sealed, *Unwound, *Tags, *Facts or *Pending.
	Body Body
}

// A Body is the part of an Event that says what happened.
type Body interface {
	kind() kind

	// at is the block that the chain is at after the event.
	at() chain.Ref
}

// A Digest stands for all that a store was given up to one block; see
// archive.Digest.
type Digest [32]byte

// String returns the digest in hex.
func (d Digest) String() string { return fmt.Sprintf("%x", d[:]) }

// Marks are the blocks that are called safe and finalized; nil is none.
type Marks struct {
	Safe, Finalized *chain.Ref
}

// Sealed is a block that follows the one before.
type Sealed struct {
	chain.Ref
	Parent chain.Hash

	// Header, Body and Receipts are as the writer stores them, Transactions
	// their hashes, and Diff what the block changed; it is never nil.
	Header, Body []byte
	Transactions []chain.Hash
	Receipts     []byte
	Diff         *chain.Diff

	Marks  Marks
	Digest Digest // after the block
}

// Unwound says that the chain goes on from To. Where Goal is another block it is
// the end of a branch that takes the place of what was above To: the blocks up
// to it follow, and are to be seen together (P6). Where it is To, what follows is
// seen as it comes.
//
// It is also the first event of each epoch: To is then the block that the writer
// goes on from.
type Unwound struct {
	To, Goal chain.Ref
}

// Tags says that other blocks are safe or finalized, without another block.
type Tags struct {
	Head  chain.Ref // the newest block at that time
	Marks Marks
}

// Facts are values at the first block of a sparse store, which the writer learnt
// after it began.
type Facts struct {
	Head  chain.Ref // the newest block at that time
	Facts *chain.Facts
}

// Pending is what is pre-confirmed, as a whole or as what was added. One without
// blocks says that nothing is; it is also how a writer shows that it lives.
type Pending struct {
	// Parent is the writer's newest sealed block, on which all of it stands.
	Parent chain.Ref

	// Base is 0 where this is the whole, and else the Order of the event that it
	// adds to.
	Base uint64

	// GoodFor is how long from its arrival on it is to be believed unless
	// something is added. It is a duration because clocks differ.
	GoodFor time.Duration

	// Why is the reason where something was withdrawn since the last event.
	Why Reason

	Blocks []Part
}

// A Part is a pre-confirmed block, or what was added to it.
type Part struct {
	// Header and Index are those of the block as it is now.
	Header *types.Header
	Index  uint64

	// First is how many transactions the block had before this Part. What
	// follows is what was added: hashes, and one transaction and one receipt for
	// each; nil where they are not known, as in chain.Preconfirmed.
	First        int
	Hashes       []chain.Hash
	Transactions []*types.Transaction
	Receipts     []*types.Receipt

	// Layers are what its flashblocks changed, oldest first.
	Layers []Layer
}

// A Layer is what one flashblock changed, or several.
type Layer struct {
	First int // index in the block of its first transaction
	Diff  *chain.Diff
}

// A Reason says why pre-confirmed state was withdrawn.
type Reason byte

const (
	// NotWithdrawn: nothing was taken back.
	NotWithdrawn Reason = iota

	// Revoked: a block was sealed that does not hold what was promised.
	Revoked

	// Expired: nothing was added for too long.
	Expired

	// Replaced: the sequencer began the block anew.
	Replaced

	// Dropped: the writer could not vouch for it any more.
	Dropped
)

var reasons = [...]string{"not withdrawn", "revoked", "expired", "replaced", "dropped"}

// String returns the reason in lower case.
func (r Reason) String() string {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return fmt.Sprintf("reason %d", byte(r))
}

type kind byte

const (
	kindSealed kind = iota + 1
	kindUnwound
	kindTags
	kindFacts
	kindPending
)

func (*Sealed) kind() kind  { return kindSealed }
func (*Unwound) kind() kind { return kindUnwound }
func (*Tags) kind() kind    { return kindTags }
func (*Facts) kind() kind   { return kindFacts }
func (*Pending) kind() kind { return kindPending }

func (s *Sealed) at() chain.Ref  { return s.Ref }
func (u *Unwound) at() chain.Ref { return u.To }
func (t *Tags) at() chain.Ref    { return t.Head }
func (f *Facts) at() chain.Ref   { return f.Head }
func (p *Pending) at() chain.Ref { return p.Parent }

// At returns the block that the chain is at after the event; for Pending it is
// the sealed block that it stands on.
func (e *Event) At() chain.Ref { return e.Body.at() }
