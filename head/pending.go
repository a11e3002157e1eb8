// SPDX-License-Identifier: Apache-2.0

package head

import (
	"math"

	"glimpse/chain"
)

// An Overlay is pre-confirmed state, as what it changes of the state below. It
// is immutable and safe for concurrent use.
type Overlay interface {
	// Parent is the sealed block that it stands on.
	Parent() chain.Ref

	// Preconfirmed returns its newest block; false where nothing is
	// pre-confirmed.
	Preconfirmed() (*chain.Preconfirmed, bool)

	// Transaction returns the pre-confirmed block that has a transaction, and
	// its index there.
	Transaction(chain.Hash) (block *chain.Preconfirmed, index int, ok bool)

	// Account, Slot and Code report false for what is as in the state below.
	Account(chain.Address) (chain.Account, bool)
	Slot(chain.Address, chain.Slot) (chain.Value, bool)
	Code(chain.Hash) ([]byte, bool)

	// Storage returns up to limit slots of an address that were changed, in
	// order, beginning after the slot after where that is not nil. More says
	// that there are others. Zero is a slot that was cleared; where wiped is
	// true all others are zero, and no zero is listed.
	Storage(a chain.Address, after *chain.Slot, limit int) (slots []chain.SlotDiff, more, wiped bool)

	// Diff returns all changes as one Diff.
	Diff() *chain.Diff
}

// fitting returns o, or nil where it says nothing about s: pending is anchored to
// its parent by hash (P3).
func fitting(s State, o Overlay) Overlay {
	if o == nil || o.Parent() != s.Head() {
		return nil
	}
	if _, ok := o.Preconfirmed(); !ok {
		return nil
	}
	return o
}

// Pending returns the newest pre-confirmed block; false where nothing is
// pre-confirmed, and pending means latest. Its state is View(chain.Pending).
func (l *Lease) Pending() (*chain.Preconfirmed, bool) {
	b := l.state.preconfirmed()
	return b, b != nil
}

// PendingTransaction returns the pre-confirmed block that has a transaction, and
// its index there; false where none has it. It is one that Pending returns, or one
// below it that is not sealed either.
func (l *Lease) PendingTransaction(h chain.Hash) (block *chain.Preconfirmed, index int, ok bool) {
	if l.state.overlay == nil {
		return nil, 0, false
	}
	return l.state.overlay.Transaction(h)
}

// PendingChanges returns what is pre-confirmed about the storage of an address,
// in order. Where wiped is true all of it that is not in slots is zero, and
// there are no zeros in slots; otherwise it is as in the latest block, and a zero
// is a slot that was cleared. The slice may be shared and must not be modified.
func (l *Lease) PendingChanges(a chain.Address) (slots []chain.SlotDiff, wiped bool) {
	if l.state.overlay == nil {
		return nil, false
	}
	slots, _, wiped = l.state.overlay.Storage(a, nil, math.MaxInt)
	return slots, wiped
}

// PendingDiff returns all that is pre-confirmed on top of the latest block as
// one Diff; false where nothing is. It may be shared and must not be modified.
func (l *Lease) PendingDiff() (*chain.Diff, bool) {
	if l.state.overlay == nil {
		return nil, false
	}
	return l.state.overlay.Diff(), true
}
