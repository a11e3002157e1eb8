// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
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
