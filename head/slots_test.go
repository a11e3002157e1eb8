// SPDX-License-Identifier: Apache-2.0

package head_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"glimpse/chain"
	"glimpse/head"
)

func entry(slot, value byte) chain.SlotDiff {
	return chain.SlotDiff{Slot: chain.Slot{31: slot}, Value: chain.Value{31: value}}
}

func TestPendingSlots(t *testing.T) {
	sealed := []chain.SlotDiff{entry(1, 1), entry(3, 3), entry(5, 5), entry(7, 7)}
	tests := []struct {
		name    string
		changes []chain.SlotDiff
		wiped   bool
		want    []chain.SlotDiff
	}{
		{"nothing changed", nil, false, sealed},
		{"one changed", []chain.SlotDiff{entry(3, 9)}, false, []chain.SlotDiff{entry(1, 1), entry(3, 9), entry(5, 5), entry(7, 7)}},
		{"some added", []chain.SlotDiff{entry(0, 9), entry(4, 9), entry(8, 9)}, false,
			[]chain.SlotDiff{entry(0, 9), entry(1, 1), entry(3, 3), entry(4, 9), entry(5, 5), entry(7, 7), entry(8, 9)}},
		{"first and last cleared", []chain.SlotDiff{entry(1, 0), entry(7, 0)}, false, []chain.SlotDiff{entry(3, 3), entry(5, 5)}},
		{"all cleared", []chain.SlotDiff{entry(1, 0), entry(3, 0), entry(5, 0), entry(7, 0)}, false, nil},
		{"cleared what was never there", []chain.SlotDiff{entry(2, 0), entry(9, 0)}, false, sealed},
		{"wiped", nil, true, nil},
		{"wiped and written again", []chain.SlotDiff{entry(3, 9), entry(4, 9)}, true, []chain.SlotDiff{entry(3, 9), entry(4, 9)}},
	}
	for _, tt := range tests {
		for limit := 1; limit < 9; limit++ {
			t.Run(fmt.Sprintf("%s, pages of %d", tt.name, limit), func(t *testing.T) {
				state := newState(1, 0, 9)
				state.slots = sealed
				var p head.Publisher
				p.Publish(state, &fakeOverlay{parent: state.Head(), slots: tt.changes, wiped: tt.wiped}, time.Time{})
				defer p.Close()
				l := p.Acquire()
				defer l.Release()
				if got := pages(t, l, chain.Pending, limit); !reflect.DeepEqual(got, tt.want) {
					t.Errorf("on pending got %v, want %v", got, tt.want)
				}
				if got := pages(t, l, chain.Latest, limit); !reflect.DeepEqual(got, sealed) {
					t.Errorf("on latest got %v, want %v", got, sealed)
				}
				if got, wiped := l.PendingChanges(chain.Address{}); !reflect.DeepEqual(got, tt.changes) || wiped != tt.wiped {
					t.Errorf("PendingChanges = %v, %v, want %v, %v", got, wiped, tt.changes, tt.wiped)
				}
				if d, ok := l.PendingDiff(); !ok || !reflect.DeepEqual(d.Accounts[0].Slots, tt.changes) {
					t.Errorf("PendingDiff = %v, %v", d, ok)
				}
			})
		}
	}
}

// pages lists all, and expects pages that are full but for the last.
func pages(t *testing.T, l *head.Lease, sel chain.Selector, limit int) (all []chain.SlotDiff) {
	t.Helper()
	var after *chain.Slot
	for {
		page, more, err := l.Slots(sel, chain.Address{}, after, limit)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page...)
		if !more {
			return all
		}
		if len(page) != limit {
			t.Fatalf("a page of %d with more to come, want %d", len(page), limit)
		}
		after = &page[limit-1].Slot
	}
}

func TestRandomPendingSlots(t *testing.T) {
	for seed := range uint64(50) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			state := newState(1, 0, 9)
			o := &fakeOverlay{parent: state.Head()}
			var want []chain.SlotDiff
			for k := range byte(200) {
				value := byte(0)
				if r.IntN(2) == 0 {
					value = 1 + byte(r.IntN(9))
					state.slots = append(state.slots, entry(k, value))
				}
				if r.IntN(3) == 0 {
					value = byte(r.IntN(4))
					o.slots = append(o.slots, entry(k, value))
				}
				if value != 0 {
					want = append(want, entry(k, value))
				}
			}
			var p head.Publisher
			p.Publish(state, o, time.Time{})
			defer p.Close()
			l := p.Acquire()
			defer l.Release()
			if got := pages(t, l, chain.Pending, 1+r.IntN(30)); !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestSlotsOfBlocksThatAreNotHere(t *testing.T) {
	var p head.Publisher
	p.Publish(newState(1, 0, 9), nil, time.Time{})
	defer p.Close()
	l := p.Acquire()
	defer l.Release()
	var miss *chain.Miss
	if _, _, err := l.Slots(chain.ByNumber(10), chain.Address{}, nil, 1); !errors.As(err, &miss) || miss.Reason != chain.Future {
		t.Errorf("slots above the head: %v, want future", err)
	}
	if _, _, err := l.Slots(chain.Safe, chain.Address{}, nil, 1); !errors.Is(err, chain.ErrNoTag) {
		t.Errorf("slots at safe: %v, want ErrNoTag", err)
	}
}

// P2: a listing that could not be read to its end is an error and not shorter.
func TestFailedPageIsAnError(t *testing.T) {
	for _, broken := range []int{1, 2} {
		state := newState(1, 0, 9)
		state.slots, state.broken = []chain.SlotDiff{entry(1, 1), entry(2, 2), entry(3, 3)}, broken
		var p head.Publisher
		p.Publish(state, &fakeOverlay{parent: state.Head(), slots: []chain.SlotDiff{entry(1, 0), entry(2, 0)}}, time.Time{})
		l := p.Acquire()
		if got, _, err := l.Slots(chain.Pending, chain.Address{}, nil, 1); !errors.Is(err, errDisk) {
			t.Errorf("with read %d failing: %v, %v, want the error", broken, got, err)
		}
		l.Release()
		p.Close()
	}
}

func TestSealedStatePassesThrough(t *testing.T) {
	state := newState(1, 0, 9)
	safe := chain.Number(7)
	state.safe = &safe
	var p head.Publisher
	p.Publish(state, nil, time.Time{})
	defer p.Close()
	l := p.Acquire()
	defer l.Release()
	if h, err := l.Hash(4); err != nil || h != state.ref(4).Hash {
		t.Errorf("Hash = %s, %v", h, err)
	}
	if d, err := l.Diff(4); err != nil || d.Accounts[0].Address != (chain.Address{4}) {
		t.Errorf("Diff = %v, %v", d, err)
	}
	if r, ok := l.Safe(); !ok || r != state.ref(7) {
		t.Errorf("Safe = %v, %v", r, ok)
	}
	if r, ok := l.Finalized(); ok {
		t.Errorf("Finalized = %v", r)
	}
	slots, more, err := l.SlotHistory(chain.Address{}, chain.Slot{}, 2, 5, 1)
	if want := []chain.SlotVersion{{Block: 2, Value: state.ref(5).Hash}}; err != nil || !more || !reflect.DeepEqual(slots, want) {
		t.Errorf("SlotHistory = %v, %v, %v, want %v", slots, more, err, want)
	}
	codes, more, err := l.CodeHistory(chain.Address{}, 2, 5, 1)
	if want := []chain.CodeVersion{{Block: 2, Hash: state.ref(5).Hash}}; err != nil || !more || !reflect.DeepEqual(codes, want) {
		t.Errorf("CodeHistory = %v, %v, %v, want %v", codes, more, err, want)
	}
	if slots, wiped := l.PendingChanges(changedAddress); len(slots) > 0 || wiped {
		t.Errorf("PendingChanges = %v, %v, want none", slots, wiped)
	}
	if d, ok := l.PendingDiff(); ok {
		t.Errorf("PendingDiff = %v, want none", d)
	}
}
