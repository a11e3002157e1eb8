// SPDX-License-Identifier: Apache-2.0

package pending_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/head"
	"glimpse/internal/memview"
	"glimpse/pending"
)

// What an Overlay says about an address, all at once or page by page, and as one
// Diff, leads from the state below to the state above.
func TestOverlayListsWhatItChanged(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			base := memview.New()
			apply(t, base, randomDiff(r, base))
			var diffs []*chain.Diff
			above := base.Clone()
			for range 1 + r.IntN(60) {
				d := randomDiff(r, above)
				apply(t, above, d)
				diffs = append(diffs, d)
			}
			// As many layers as that, in blocks of a few.
			var blocks [][]*chain.Diff
			for len(diffs) > 0 {
				n := min(len(diffs), 1+r.IntN(25))
				blocks, diffs = append(blocks, diffs[:n]), diffs[n:]
			}
			o := pending.Stack(blocks...)
			for i := range byte(someAddresses) {
				storageLeadsTo(t, r, o, chain.Address{i}, base, above)
			}
			diffLeadsTo(t, o.Diff(), base, above)
		})
	}
}

func storageLeadsTo(t *testing.T, r *rand.Rand, o *pending.Overlay, addr chain.Address, base, above *memview.State) {
	t.Helper()
	all, more, wiped := o.Storage(addr, nil, math.MaxInt)
	if more {
		t.Errorf("there is more than all of %s", addr)
	}
	listed := make(map[chain.Slot]chain.Value)
	for i, s := range all {
		if i > 0 && all[i-1].Slot.Cmp(s.Slot) >= 0 {
			t.Errorf("slots of %s are not in order: %v", addr, all)
		}
		if wiped && s.Value == (chain.Value{}) {
			t.Errorf("slot %s of %s is listed as zero after a wipe", s.Slot, addr)
		}
		listed[s.Slot] = s.Value
	}
	for n := range uint64(someSlots) {
		got, ok := listed[word(n)]
		if !ok && !wiped {
			got, _ = base.Slot(addr, word(n))
		}
		if want, _ := above.Slot(addr, word(n)); got != want {
			t.Errorf("slot %d of %s is %s, want %s", n, addr, got, want)
		}
	}
	var paged []chain.SlotDiff
	var after *chain.Slot
	for more := true; more; {
		var page []chain.SlotDiff
		var again bool
		limit := 1 + r.IntN(3)
		page, more, again = o.Storage(addr, after, limit)
		if again != wiped || len(page) > limit || more && len(page) == 0 {
			t.Fatalf("page of %d after %v is %v, %v, %v, want wiped %v", limit, after, page, more, again, wiped)
		}
		paged = append(paged, page...)
		if len(paged) > 0 {
			after = &paged[len(paged)-1].Slot
		}
	}
	if !reflect.DeepEqual(paged, all) {
		t.Errorf("pages of %s are %v, want %v", addr, paged, all)
	}
}

// diffLeadsTo replays d by hand: a folded Diff may change things to what they
// were, which Apply refuses.
func diffLeadsTo(t *testing.T, d *chain.Diff, base, above *memview.State) {
	t.Helper()
	if _, err := chain.DecodeDiff(chain.AppendDiff(nil, d)); err != nil {
		t.Errorf("the Diff is not in canonical form: %v", err)
	}
	changes := make(map[chain.Address]chain.AccountDiff)
	for _, a := range d.Accounts {
		changes[a.Address] = a
	}
	for i := range byte(someAddresses) {
		addr := chain.Address{i}
		a := changes[addr]
		got, _ := base.Account(addr)
		if a.Changed {
			got = a.Account
		}
		if want, _ := above.Account(addr); got != want {
			t.Errorf("account %s is %+v, want %+v", addr, got, want)
		}
		written := make(map[chain.Slot]chain.Value)
		for _, s := range a.Slots {
			written[s.Slot] = s.Value
		}
		for n := range uint64(someSlots) {
			value, ok := written[word(n)]
			if !ok && !a.Wiped {
				value, _ = base.Slot(addr, word(n))
			}
			if want, _ := above.Slot(addr, word(n)); value != want {
				t.Errorf("slot %d of %s is %s, want %s", n, addr, value, want)
			}
		}
	}
}

// A page of the pre-confirmed storage of a big contract costs as much as it
// holds, and not what the layers hold.
func TestStoragePageIsBounded(t *testing.T) {
	const slots, page = 100_000, 10
	addr := chain.Address{1}
	big := &chain.Diff{Accounts: []chain.AccountDiff{{Address: addr}}}
	for n := range uint64(slots) {
		big.Accounts[0].Slots = append(big.Accounts[0].Slots, chain.SlotDiff{Slot: word(n), Value: word(n + 1)})
	}
	o := pending.Stack([]*chain.Diff{big, {Accounts: []chain.AccountDiff{{Address: addr, Slots: []chain.SlotDiff{{Slot: word(7)}}}}}})
	after := word(slots / 2)
	const runs = 100
	var before, end runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		if got, more, _ := o.Storage(addr, &after, page); len(got) != page || !more {
			t.Fatalf("page of %d, %v", len(got), more)
		}
	}
	runtime.ReadMemStats(&end)
	if took, most := (end.TotalAlloc-before.TotalAlloc)/runs, uint64(8<<10); took > most {
		t.Errorf("a page of %d takes %d bytes, want at most %d", page, took, most)
	}
}

// The listing of pending through a Lease is that of the state above.
func TestPendingSlotsAreThoseOfTheStateAbove(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			base := memview.New()
			apply(t, base, randomDiff(r, base))
			above := base.Clone()
			var diffs []*chain.Diff
			for range 1 + r.IntN(6) {
				d := randomDiff(r, above)
				apply(t, above, d)
				diffs = append(diffs, d)
			}
			state := &stored{link: &link{header: &types.Header{Number: new(big.Int)}, state: base}}
			state.refs.Store(1)
			var p head.Publisher
			p.Publish(state, &onAny{pending.Stack(diffs), state.Head()}, time.Time{})
			defer p.Close()
			l := p.Acquire()
			defer l.Release()
			for i := range byte(someAddresses) {
				addr := chain.Address{i}
				if got, want := listAll(t, r, l, chain.Pending, addr), slotsOf(above, addr); !reflect.DeepEqual(got, want) {
					t.Errorf("slots of %s on pending are %v, want %v", addr, got, want)
				}
				if got, want := listAll(t, r, l, chain.Latest, addr), slotsOf(base, addr); !reflect.DeepEqual(got, want) {
					t.Errorf("slots of %s on latest are %v, want %v", addr, got, want)
				}
			}
		})
	}
}

// onAny is an Overlay that was made without a chain, put on a block.
type onAny struct {
	*pending.Overlay
	parent chain.Ref
}

func (o *onAny) Parent() chain.Ref { return o.parent }

func listAll(t *testing.T, r *rand.Rand, l *head.Lease, sel chain.Selector, addr chain.Address) (all []chain.SlotDiff) {
	t.Helper()
	var after *chain.Slot
	for more := true; more; {
		var page []chain.SlotDiff
		var err error
		limit := 1 + r.IntN(3)
		if page, more, err = l.Slots(sel, addr, after, limit); err != nil || len(page) > limit || more && len(page) == 0 {
			t.Fatalf("page of %d after %v is %v, %v, %v", limit, after, page, more, err)
		}
		if all = append(all, page...); more {
			after = &page[len(page)-1].Slot
		}
	}
	return all
}

// slotsOf lists the few slots there can be.
func slotsOf(v chain.View, addr chain.Address) (slots []chain.SlotDiff) {
	for n := range uint64(someSlots) {
		if value, _ := v.Slot(addr, word(n)); value != (chain.Value{}) {
			slots = append(slots, chain.SlotDiff{Slot: word(n), Value: value})
		}
	}
	return slots
}
