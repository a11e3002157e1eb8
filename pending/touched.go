// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"encoding/binary"

	"glimpse/chain"
)

// touched says of a slot that no layer of an Overlay changes it, or that one may.
// Most reads are of slots that nobody promised to change, and would otherwise look
// through all layers to find that out. It is small, so that each flashblock can have
// its own; in a block that writes so much that most bits are set, layers are looked
// through as without it.
type touched [1 << 15 / 64]uint64

// touchedBy returns what layers change.
func touchedBy(layers []*layer) *touched {
	w := new(touched)
	for _, l := range layers {
		w.add(l.diff)
	}
	return w
}

// with returns w and what one more layer changes. Nil is nothing.
func (w *touched) with(d *chain.Diff) *touched {
	next := new(touched)
	if w != nil {
		*next = *w
	}
	next.add(d)
	return next
}

func (w *touched) add(d *chain.Diff) {
	for i := range d.Accounts {
		a := &d.Accounts[i]
		account := mixAddress(&a.Address)
		if a.Wiped { // which changes slots that are not listed
			w.set(account)
		}
		for k := range a.Slots {
			w.set(mixSlot(account, &a.Slots[k].Slot))
		}
	}
}

// may reports whether a layer may change the slot.
func (w *touched) may(addr *chain.Address, key *chain.Slot) bool {
	account := mixAddress(addr)
	return w.has(account) || w.has(mixSlot(account, key))
}

func (w *touched) set(h uint64) { w[h%uint64(len(w))] |= 1 << (h >> 58) }

func (w *touched) has(h uint64) bool { return w[h%uint64(len(w))]&(1<<(h>>58)) != 0 }

// Whoever makes slots that share a bit makes their reads as slow as those of slots
// that are written, no worse, so that these need not withstand it.
func mixAddress(addr *chain.Address) uint64 {
	h := mix(uint64(binary.LittleEndian.Uint32(addr[16:])), binary.LittleEndian.Uint64(addr[:]))
	return mix(h, binary.LittleEndian.Uint64(addr[8:]))
}

func mixSlot(h uint64, key *chain.Slot) uint64 {
	for i := 0; i < len(key); i += 8 {
		h = mix(h, binary.LittleEndian.Uint64(key[i:]))
	}
	return h
}

// mix is a step of the finalizer of MurmurHash3: a word, times an odd number, folded.
func mix(h, word uint64) uint64 {
	h = (h ^ word) * 0xff51afd7ed558ccd
	return h ^ h>>32
}
