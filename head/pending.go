// SPDX-License-Identifier: Apache-2.0

package head

import "glimpse/chain"

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
	if l.state.overlay == nil {
		return nil, false
	}
	return l.state.overlay.Preconfirmed()
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
