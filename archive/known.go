// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"encoding/binary"
	"hash/maphash"
	"sync/atomic"

	"glimpse/chain"
)

// A knownSlots remembers slots that were read, so that those that many ask for
// cost no seek. What it holds are facts about blocks that are there: from one
// block through another, a slot has a value. A commit adds blocks and makes none
// of these facts untrue, so there is no moment at which it is behind; where no block
// since has written the slot, the fact holds for the newer blocks too. Only Unwind
// takes blocks away: each fact is of one branch, and readers of another do not see
// it.
//
// Reads take no lock (P4). Everything is in atomic words under a sequence number
// that is odd while an entry is written; whoever meets that, or a number that
// changed, asks the store.
type knownSlots struct {
	seed    maphash.Seed
	entries []knownSlot // a power of two of them
	last    lastWrites
}

// A knownSlot fills two lines of a processor's cache.
type knownSlot struct {
	sequence      atomic.Uint64
	branch        atomic.Uint64 // plus one; zero is an entry that was never written
	from, through atomic.Uint64
	key           [slotWords]atomic.Uint64
	value         [4]atomic.Uint64
	_             [8]byte
}

const (
	knownSlotBytes = 128
	slotWords      = 7 // address and slot, padded
)

// newKnownSlots returns a table of at most so many bytes.
func newKnownSlots(bytes int64) *knownSlots {
	count := int64(2)
	for 2*count*knownSlotBytes <= bytes {
		count *= 2
	}
	return &knownSlots{seed: maphash.MakeSeed(), entries: make([]knownSlot, count), last: newLastWrites(int(count))}
}

// A slotKey is an address and a slot as words, and where they belong.
type slotKey struct {
	words [slotWords]uint64
	hash  uint64
}

func (k *knownSlots) key(a chain.Address, s chain.Slot) (key slotKey) {
	var text [8 * slotWords]byte
	copy(text[:], a[:])
	copy(text[len(a):], s[:])
	for i := range key.words {
		key.words[i] = binary.LittleEndian.Uint64(text[8*i:])
	}
	key.hash = maphash.Bytes(k.seed, text[:])
	return key
}

// place returns one of the entries that a key may be in: two neighbours at each of
// two places, so that a table that is half full has room for almost every key.
func (k *knownSlots) place(key *slotKey, i int) *knownSlot {
	at := key.hash
	if i >= knownPlaces/2 {
		at >>= 32
	}
	return &k.entries[(at^uint64(i%2))&uint64(len(k.entries)-1)]
}

const knownPlaces = 4

// find returns the value of a slot at block n of a branch, where it is known.
func (k *knownSlots) find(key *slotKey, branch uint64, n chain.Number) (v chain.Value, ok bool) {
	for i := range knownPlaces {
		if v, ok = k.place(key, i).read(key, branch, n, &k.last); ok {
			return v, true
		}
	}
	return chain.Value{}, false
}

func (e *knownSlot) read(key *slotKey, branch uint64, n chain.Number, last *lastWrites) (v chain.Value, ok bool) {
	sequence := e.sequence.Load()
	if sequence%2 != 0 || e.branch.Load() != branch+1 || uint64(n) < e.from.Load() || !e.has(key) {
		return chain.Value{}, false
	}
	if through := e.through.Load(); uint64(n) > through && !last.none(key, through) {
		return chain.Value{}, false
	}
	for i := range e.value {
		binary.LittleEndian.PutUint64(v[8*i:], e.value[i].Load())
	}
	return v, e.sequence.Load() == sequence
}

func (e *knownSlot) has(key *slotKey) bool {
	for i := range key.words {
		if e.key[i].Load() != key.words[i] {
			return false
		}
	}
	return true
}

// is reports whether the entry is for the value that a slot has from a block on.
func (e *knownSlot) is(key *slotKey, branch uint64, from chain.Number) bool {
	return e.branch.Load() == branch+1 && e.from.Load() == uint64(from) && e.has(key)
}

// room returns the entry for the value that a slot has from a block on: the one that
// it is in, or else one whose fact is of an older branch, or reaches least far, for
// newer blocks are asked for more often. Several values of one slot may be known.
func (k *knownSlots) room(key *slotKey, branch uint64, from chain.Number) *knownSlot {
	var least *knownSlot
	var age [2]uint64
	for i := range knownPlaces {
		e := k.place(key, i)
		of, through := e.branch.Load(), e.through.Load()
		if e.is(key, branch, from) {
			return e
		}
		if least == nil || of < age[0] || of == age[0] && through < age[1] {
			least, age = e, [2]uint64{of, through}
		}
	}
	return least
}

// add remembers that a slot has a value from one block through another. Where two
// write at once, one of them is not remembered.
func (k *knownSlots) add(key *slotKey, branch uint64, from, through chain.Number, v chain.Value) {
	e := k.room(key, branch, from)
	sequence := e.sequence.Load()
	if sequence%2 != 0 || !e.sequence.CompareAndSwap(sequence, sequence+1) {
		return
	}
	defer e.sequence.Store(sequence + 2)
	if e.is(key, branch, from) {
		e.through.Store(max(e.through.Load(), uint64(through)))
		return
	}
	e.branch.Store(branch + 1)
	e.from.Store(uint64(from))
	e.through.Store(uint64(through))
	for i := range key.words {
		e.key[i].Store(key.words[i])
	}
	for i := range e.value {
		e.value[i].Store(binary.LittleEndian.Uint64(v[8*i:]))
	}
}
