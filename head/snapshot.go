// SPDX-License-Identifier: Apache-2.0

package head

import (
	"sync"
	"sync/atomic"

	"glimpse/chain"
)

// A State is the store at one moment. It never changes, and it is safe for
// concurrent use until it is released.
type State interface {
	Head() chain.Ref
	Oldest() chain.Number // the lowest block with state

	// Safe and Finalized report false while no such block is known.
	Safe() (chain.Ref, bool)
	Finalized() (chain.Ref, bool)

	Account(chain.Number, chain.Address) (chain.Account, error)
	Slot(chain.Number, chain.Address, chain.Slot) (chain.Value, error)
	Code(chain.Hash) ([]byte, error)

	// Number returns the height of a block; canonical is false for one that a
	// reorg removed. A hash never seen is a chain.Miss.
	Number(chain.Hash) (n chain.Number, canonical bool, err error)

	// Header and Body return the block's RLP.
	Header(chain.Number) ([]byte, error)
	Body(chain.Number) ([]byte, error)

	// Receipts returns the block's receipts as they are stored, Transaction
	// where a transaction is; ok is false where no block has it.
	Receipts(chain.Number) ([]byte, error)
	Transaction(chain.Hash) (n chain.Number, index int, ok bool, err error)

	// Retain reports false when the State is already gone. Each Retain, and the
	// State's creation, is matched by one Release.
	Retain() bool
	Release()
}

// A Publisher hands the current State, and what is pre-confirmed on top of it,
// from one writer to many readers.
type Publisher struct {
	current atomic.Pointer[published]
	leases  sync.Pool // of *Lease, to be used again
}

// published is what is swapped: a State and its Overlay, so that nobody can see
// one without the other (P1).
type published struct {
	State
	overlay Overlay // nil where nothing is pre-confirmed
}

// Publish makes s what new Leases are taken on, and o what is pre-confirmed on
// it; nil is nothing. An Overlay on another block is not used (P3). It takes over
// the caller's reference to s; the State before lives on until its last Lease is
// released. The State may be the one before, for the sake of another Overlay,
// with a reference of its own.
func (p *Publisher) Publish(s State, o Overlay) {
	if old := p.current.Swap(&published{s, fitting(s, o)}); old != nil {
		old.Release()
	}
}

// Close withdraws the current State. Leases already taken stay good; Acquire
// must not be called any more.
func (p *Publisher) Close() {
	if old := p.current.Swap(nil); old != nil {
		old.Release()
	}
}

// retain returns the current State with a reference of the caller's own.
func (p *Publisher) retain() *published {
	for {
		// Between the load and Retain a writer may have published another and
		// the last reader of this one may have gone; then there is a newer one.
		if s := p.current.Load(); s.Retain() {
			return s
		}
	}
}
