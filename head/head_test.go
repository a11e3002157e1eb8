// SPDX-License-Identifier: Apache-2.0

package head_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"glimpse/chain"
	"glimpse/head"
)

// fakeState is a store whose every slot holds the number of the block read,
// plus a mark that tells two branches apart.
type fakeState struct {
	branch          byte
	latest, oldest  chain.Number
	safe, finalized *chain.Number
	refs            atomic.Int64

	slots  []chain.SlotDiff
	pages  int // how many were read
	broken int // which of them fails
}

func newState(branch byte, oldest, latest chain.Number) *fakeState {
	s := &fakeState{branch: branch, oldest: oldest, latest: latest}
	s.refs.Store(1)
	return s
}

func (s *fakeState) ref(n chain.Number) chain.Ref {
	return chain.Ref{Number: n, Hash: chain.Hash{0: s.branch, 31: byte(n)}}
}
func (s *fakeState) Head() chain.Ref      { return s.ref(s.latest) }
func (s *fakeState) Oldest() chain.Number { return s.oldest }
func (s *fakeState) optional(n *chain.Number) (chain.Ref, bool) {
	if n == nil {
		return chain.Ref{}, false
	}
	return s.ref(*n), true
}
func (s *fakeState) Safe() (chain.Ref, bool)      { return s.optional(s.safe) }
func (s *fakeState) Finalized() (chain.Ref, bool) { return s.optional(s.finalized) }
func (s *fakeState) Account(n chain.Number, _ chain.Address) (chain.Account, error) {
	return chain.Account{Exists: true, Nonce: uint64(n)}, nil
}
func (s *fakeState) Slot(n chain.Number, _ chain.Address, _ chain.Slot) (chain.Value, error) {
	return s.ref(n).Hash, nil
}
func (s *fakeState) Code(chain.Hash) ([]byte, error) { return nil, errors.New("no code here") }
func (s *fakeState) Number(h chain.Hash) (chain.Number, bool, error) {
	if n := chain.Number(h[31]); n <= s.latest {
		return n, h[0] == s.branch, nil
	}
	return 0, false, &chain.Miss{Reason: chain.UnknownHash, Oldest: s.oldest, Latest: s.latest}
}
func (s *fakeState) Hash(n chain.Number) (chain.Hash, error) { return s.ref(n).Hash, nil }
func (s *fakeState) Diff(n chain.Number) (*chain.Diff, error) {
	return &chain.Diff{Accounts: []chain.AccountDiff{{Address: chain.Address{byte(n)}, Wiped: true}}}, nil
}
func (s *fakeState) SlotHistory(_ chain.Address, _ chain.Slot, from, to chain.Number, limit int) ([]chain.SlotVersion, bool, error) {
	return []chain.SlotVersion{{Block: from, Value: s.ref(to).Hash}}, limit == 1, nil
}
func (s *fakeState) CodeHistory(_ chain.Address, from, to chain.Number, limit int) ([]chain.CodeVersion, bool, error) {
	return []chain.CodeVersion{{Block: from, Hash: s.ref(to).Hash}}, limit == 1, nil
}

// Slots lists what is in slots, whatever the account and the block.
func (s *fakeState) Slots(_ chain.Address, _ chain.Number, after *chain.Slot, limit int) ([]chain.SlotDiff, bool, error) {
	s.pages++
	if s.broken == s.pages {
		return nil, false, errDisk
	}
	page, more := pageOf(s.slots, after, limit)
	return page, more, nil
}

var errDisk = errors.New("disk on fire")

// pageOf is the part of a sorted listing that a page is.
func pageOf(all []chain.SlotDiff, after *chain.Slot, limit int) (page []chain.SlotDiff, more bool) {
	for _, s := range all {
		if after != nil && s.Slot.Cmp(*after) <= 0 {
			continue
		}
		if len(page) == limit {
			return page, true
		}
		page = append(page, s)
	}
	return page, false
}
func (s *fakeState) Header(chain.Number) ([]byte, error) { return nil, errors.New("no header here") }
func (s *fakeState) Body(chain.Number) ([]byte, error)   { return nil, errors.New("no body here") }
func (s *fakeState) Receipts(chain.Number) ([]byte, error) {
	return nil, errors.New("no receipts here")
}
func (s *fakeState) Transaction(chain.Hash) (n chain.Number, index int, ok bool, err error) {
	return 0, 0, false, errors.New("no transactions here")
}
func (s *fakeState) Retain() bool {
	for {
		n := s.refs.Load()
		if n == 0 {
			return false
		}
		if s.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}
func (s *fakeState) Release() {
	if s.refs.Add(-1) < 0 {
		panic("released too often")
	}
}

func TestViewSelects(t *testing.T) {
	state := newState(1, 3, 9)
	safe, finalized := chain.Number(7), chain.Number(5)
	state.safe, state.finalized = &safe, &finalized
	var p head.Publisher
	p.Publish(state, nil, time.Time{})
	defer p.Close()

	tests := []struct {
		name   string
		sel    chain.Selector
		number chain.Number
		reason chain.Reason
	}{
		{"not given is latest", chain.Selector{}, 9, ""},
		{"latest", chain.Latest, 9, ""},
		{"pending is latest while nothing is pre-confirmed", chain.Pending, 9, ""},
		{"safe", chain.Safe, 7, ""},
		{"finalized", chain.Finalized, 5, ""},
		{"earliest is the lowest block with state", chain.Earliest, 3, ""},
		{"a number", chain.ByNumber(4), 4, ""},
		{"the oldest number", chain.ByNumber(3), 3, ""},
		{"a canonical hash", chain.ByHash(state.ref(6).Hash), 6, ""},
		{"above the head", chain.ByNumber(10), 0, chain.Future},
		{"below the oldest", chain.ByNumber(2), 0, chain.Pruned},
		{"hash of a pruned block", chain.ByHash(state.ref(2).Hash), 0, chain.Pruned},
		{"hash never seen", chain.ByHash(chain.Hash{31: 99}), 0, chain.UnknownHash},
		{"hash of an orphan", chain.ByHash(chain.Hash{0: 2, 31: 6}), 0, chain.NotCanonical},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := p.Acquire()
			defer l.Release()
			view, err := l.View(tt.sel)
			var miss *chain.Miss
			if errors.As(err, &miss) {
				if miss.Reason != tt.reason || miss.Oldest != 3 || miss.Latest != 9 {
					t.Errorf("View(%v) misses with %+v, want %q of 3 to 9", tt.sel, miss, tt.reason)
				}
				return
			}
			if err != nil || tt.reason != "" {
				t.Fatalf("View(%v) error = %v, want reason %q", tt.sel, err, tt.reason)
			}
			a, err := view.Account(chain.Address{})
			if err != nil || chain.Number(a.Nonce) != tt.number {
				t.Errorf("View(%v) is of block %d, %v, want %d", tt.sel, a.Nonce, err, tt.number)
			}
		})
	}
}

func TestTagsNotKnownYet(t *testing.T) {
	var p head.Publisher
	p.Publish(newState(1, 0, 9), nil, time.Time{})
	defer p.Close()
	l := p.Acquire()
	defer l.Release()
	for _, sel := range []chain.Selector{chain.Safe, chain.Finalized} {
		if _, err := l.View(sel); !errors.Is(err, chain.ErrNoTag) {
			t.Errorf("View(%v) error = %v, want ErrNoTag", sel, err)
		}
	}
}

// P1 and P6: whatever is published meanwhile, a Lease answers from the branch
// that it began with, and no State is let go while a Lease is on it.
func TestLeaseKeepsItsSnapshot(t *testing.T) {
	var p head.Publisher
	states := []*fakeState{newState(0, 0, 5)}
	p.Publish(states[0], nil, time.Time{})
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				l := p.Acquire()
				branch := l.Latest().Hash[0]
				for n := range chain.Number(6) {
					v, err := l.View(chain.ByNumber(n))
					if err != nil {
						t.Error(err)
						return
					}
					got, err := v.Slot(chain.Address{}, chain.Slot{})
					if err != nil || got != (chain.Hash{0: branch, 31: byte(n)}) {
						t.Errorf("block %d reads %x, %v on branch %d", n, got, err, branch)
					}
				}
				l.Release()
			}
		})
	}
	for i := range 2000 {
		s := newState(byte(i), 0, 5)
		states = append(states, s)
		p.Publish(s, nil, time.Time{})
	}
	close(stop)
	readers.Wait()
	p.Close()
	for i, s := range states {
		if n := s.refs.Load(); n != 0 {
			t.Errorf("state %d has %d references left, want 0", i, n)
		}
	}
}
