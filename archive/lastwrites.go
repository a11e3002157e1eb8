// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"sync/atomic"

	"glimpse/chain"
)

// lastWrites tells of a slot that no block after another has written it, so that
// what was known at one block is known at the newest too. It is told of a block
// before readers can see it, and knows more than it must: slots share a place,
// blocks that were unwound stay, and of blocks from before the store was opened it
// knows nothing. It is asked and told without a lock.
type lastWrites struct {
	since  uint64          // the head when the store was opened
	wiped  atomic.Uint64   // the newest block that wiped an account
	places []atomic.Uint64 // the newest block that wrote one of the slots of a place; a power of two of them
}

func newLastWrites(places int) lastWrites { return lastWrites{places: make([]atomic.Uint64, places)} }

func (w *lastWrites) place(key *slotKey) *atomic.Uint64 {
	return &w.places[key.hash>>16&uint64(len(w.places)-1)]
}

// none reports that no block after n that anybody can read has written the slot.
func (w *lastWrites) none(key *slotKey, n uint64) bool {
	return n >= w.since && w.place(key).Load() <= n && w.wiped.Load() <= n
}

// raise makes a number at least n. There is one writer.
func raise(number *atomic.Uint64, n chain.Number) {
	if number.Load() < uint64(n) {
		number.Store(uint64(n))
	}
}

// writes tells what block n is about to change.
func (k *knownSlots) writes(d *chain.Diff, n chain.Number) {
	for i := range d.Accounts {
		a := &d.Accounts[i]
		if a.Wiped {
			raise(&k.last.wiped, n)
		}
		for _, s := range a.Slots {
			key := k.key(a.Address, s.Slot)
			raise(k.last.place(&key), n)
		}
	}
}
