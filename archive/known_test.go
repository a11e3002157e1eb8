// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"glimpse/chain"
)

// truth is the value of a slot that changes every ten blocks.
func truth(slot uint16, branch uint64, n chain.Number) (v chain.Value) {
	binary.BigEndian.PutUint16(v[:], slot)
	binary.BigEndian.PutUint64(v[8:], branch)
	binary.BigEndian.PutUint64(v[24:], uint64(n/10))
	return v
}

// Many who add and find at once in a table that is far too small never find
// anything but the truth.
func TestKnownSlotsAreTrue(t *testing.T) {
	seed := rand.Uint64()
	t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
		known := newKnownSlots(8 * knownSlotBytes)
		known.last.since = 40 // all blocks are from before the store was opened
		var workers sync.WaitGroup
		found := make([]int, 4)
		for w := range found {
			random := rand.New(rand.NewPCG(seed, uint64(w)))
			workers.Go(func() {
				for range 50_000 {
					slot, branch, n := uint16(random.IntN(20)), uint64(random.IntN(2)), chain.Number(random.IntN(40))
					key := known.key(chain.Address{1}, chain.Slot{byte(slot)})
					if got, ok := known.find(&key, branch, n); ok {
						found[w]++
						if want := truth(slot, branch, n); got != want {
							t.Errorf("slot %d of branch %d at %d is %s, want %s", slot, branch, n, got, want)
							return
						}
					} else {
						known.add(&key, branch, n/10*10, n, truth(slot, branch, n))
					}
				}
			})
		}
		workers.Wait()
		for w, n := range found {
			if n == 0 {
				t.Errorf("worker %d found nothing", w)
			}
		}
	})
}

func TestKnownSlotsHoldForTheirBlocks(t *testing.T) {
	known := newKnownSlots(1 << 10)
	known.last.since = 20 // all blocks are from before the store was opened
	key := known.key(chain.Address{1}, chain.Slot{2})
	other := known.key(chain.Address{1}, chain.Slot{3})
	value := chain.Value{31: 7}
	known.add(&key, 0, 5, 9, value)
	known.add(&key, 0, 5, 8, value) // knows less
	for _, tt := range []struct {
		name   string
		key    *slotKey
		branch uint64
		n      chain.Number
		ok     bool
	}{
		{"before", &key, 0, 4, false},
		{"the first block", &key, 0, 5, true},
		{"the last block", &key, 0, 9, true},
		{"after", &key, 0, 10, false},
		{"another branch", &key, 1, 7, false},
		{"another slot", &other, 0, 7, false},
	} {
		got, ok := known.find(tt.key, tt.branch, tt.n)
		if ok != tt.ok || ok && got != value {
			t.Errorf("%s: %s, %v, want %v", tt.name, got, ok, tt.ok)
		}
	}
	known.add(&key, 0, 1, 4, chain.Value{31: 6})
	for n, want := range map[chain.Number]chain.Value{3: {31: 6}, 7: value} {
		if got, ok := known.find(&key, 0, n); !ok || got != want {
			t.Errorf("with an older value too, at %d: %s, %v, want %s", n, got, ok, want)
		}
	}
	known.add(&key, 0, 10, 12, chain.Value{31: 8})
	if got, ok := known.find(&key, 0, 12); !ok || got != (chain.Value{31: 8}) {
		t.Errorf("a newer value: %s, %v", got, ok)
	}
}

// A fact holds at later blocks for as long as none of them has written the slot.
func TestKnownSlotsOutliveBlocks(t *testing.T) {
	address, slot, value := chain.Address{1}, chain.Slot{2}, chain.Value{31: 7}
	writes := func(a chain.AccountDiff) *chain.Diff { return &chain.Diff{Accounts: []chain.AccountDiff{a}} }
	tests := []struct {
		name  string
		since uint64
		block *chain.Diff
		ok    bool
	}{
		{"a block that writes nothing", 5, new(chain.Diff), true},
		{"a block that writes the slot", 5, writes(chain.AccountDiff{Address: address, Slots: []chain.SlotDiff{{Slot: slot}}}), false},
		{"a block that wipes an account", 5, writes(chain.AccountDiff{Address: address, Wiped: true}), false},
		{"blocks from before the store was opened", 6, new(chain.Diff), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			known := newKnownSlots(1 << 10)
			known.last.since = tt.since
			key := known.key(address, slot)
			known.add(&key, 0, 3, 5, value)
			known.writes(tt.block, 6)
			if got, ok := known.find(&key, 0, 6); ok != tt.ok || ok && got != value {
				t.Errorf("at the block after: %s, %v, want %v", got, ok, tt.ok)
			}
			if got, ok := known.find(&key, 0, 5); !ok || got != value {
				t.Errorf("at the block itself: %s, %v", got, ok)
			}
			if _, ok := known.find(&key, 1, 6); ok {
				t.Error("it is known in another branch")
			}
		})
	}
}

// Many readers beside a writer that tells of each block before it shows it.
func TestKnownSlotsBesideAWriter(t *testing.T) {
	seed := rand.Uint64()
	t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
		const slots, blocks = 6, 10_000
		random := rand.New(rand.NewPCG(seed, 1))
		versions := make([][blocks]chain.Number, slots) // the block that wrote what a slot has at a block
		for n := 1; n < blocks; n++ {
			for s := range versions {
				if versions[s][n] = versions[s][n-1]; random.IntN(10) == 0 {
					versions[s][n] = chain.Number(n)
				}
			}
		}
		known := newKnownSlots(64 * knownSlotBytes)
		value := func(s int, n uint64) chain.Value { return truth(uint16(s), 0, 10*versions[s][n]) }
		var head, found atomic.Uint64
		var readers sync.WaitGroup
		for w := range 3 {
			random := rand.New(rand.NewPCG(seed, uint64(w+2)))
			readers.Go(func() {
				for n := uint64(0); n < blocks-1; runtime.Gosched() {
					n = head.Load()
					s := random.IntN(slots)
					key := known.key(chain.Address{1}, chain.Slot{byte(s)})
					got, ok := known.find(&key, 0, chain.Number(n))
					if want := value(s, n); ok && got != want {
						t.Errorf("slot %d at %d is %s, want %s", s, n, got, want)
						return
					}
					if ok {
						found.Add(1)
					} else {
						known.add(&key, 0, versions[s][n], chain.Number(n), value(s, n))
					}
				}
			})
		}
		for n := uint64(1); n < blocks; n++ {
			d := chain.AccountDiff{Address: chain.Address{1}}
			for s := range versions {
				if versions[s][n] == chain.Number(n) {
					d.Slots = append(d.Slots, chain.SlotDiff{Slot: chain.Slot{byte(s)}})
				}
			}
			known.writes(&chain.Diff{Accounts: []chain.AccountDiff{d}}, chain.Number(n))
			head.Store(n)
			runtime.Gosched()
		}
		readers.Wait()
		if found.Load() == 0 {
			t.Error("nothing was known")
		}
	})
}
