// SPDX-License-Identifier: Apache-2.0

package merkle_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"glimpse/chain"
	"glimpse/internal/memview"
	"glimpse/merkle"
)

// largeState has more accounts, and one more slots, than fit a page.
func largeState(t *testing.T) *memview.State {
	t.Helper()
	d := new(chain.Diff)
	for n := range uint32(9000) {
		a := chain.AccountDiff{Changed: true, Account: chain.Account{Exists: true, Nonce: uint64(n)}}
		binary.BigEndian.PutUint32(a.Address[:], n)
		if n == 77 {
			for k := range uint32(10000) {
				s := chain.SlotDiff{Value: chain.Value{31: 1}}
				binary.BigEndian.PutUint32(s.Slot[:], k)
				a.Slots = append(a.Slots, s)
			}
		}
		d.Accounts = append(d.Accounts, a)
	}
	state := memview.New()
	must(t, state.Apply(d))
	return state
}

func TestRebuildInPages(t *testing.T) {
	state := largeState(t)
	want := newSideMap()
	s := open(t, want)
	_, err := s.Apply(state.Diff())
	must(t, err)
	must(t, want.write(s.Commit(ref(5))))

	got := newSideMap()
	batches, largest := 0, 0
	_, err = merkle.Rebuild(state, got, 1<<20, ref(5), func(w []merkle.Write) error {
		batches, largest = batches+1, max(largest, len(w))
		return got.write(w)
	})
	must(t, err)
	if !got.equal(want.values) {
		t.Errorf("rebuilt %d nodes, want the same as the %d applied at once", len(got.values), len(want.values))
	}
	if batches < 5 || largest > 20000 {
		t.Errorf("got %d batches of at most %d writes, want several of bounded size", batches, largest)
	}
}

func TestRebuildCutShortStandsNowhere(t *testing.T) {
	state, nodes := largeState(t), newSideMap()
	s := open(t, nodes)
	_, err := s.Apply(state.Diff())
	must(t, err)
	must(t, nodes.write(s.Commit(ref(5))))
	full, batches := errors.New("disk full"), 0
	_, err = merkle.Rebuild(state, nodes, 0, ref(5), func(w []merkle.Write) error {
		if batches++; batches == 3 {
			return full
		}
		return nodes.write(w)
	})
	if !errors.Is(err, full) {
		t.Errorf("got %v, want the write's error", err)
	}
	if at, _, ok := open(t, nodes).At(); ok {
		t.Errorf("stands at %v after a rebuild that did not finish", at)
	}
}
