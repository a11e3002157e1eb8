// SPDX-License-Identifier: Apache-2.0

package pending_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"glimpse/chain"
	"glimpse/internal/memview"
	"glimpse/pending"
)

// A slot is read from the newest layer that says something about it.
func TestOverlaySemantics(t *testing.T) {
	addr, key := chain.Address{1}, word(1)
	base := memview.New()
	apply(t, base, &chain.Diff{Accounts: []chain.AccountDiff{{
		Address: addr, Changed: true, Account: chain.Account{Exists: true, Nonce: 1}, Slots: []chain.SlotDiff{{Slot: key, Value: word(5)}},
	}}})
	code := chain.NewCode([]byte{1, 2})
	written := &chain.Diff{Accounts: []chain.AccountDiff{{Address: addr, Slots: []chain.SlotDiff{{Slot: key, Value: word(6)}}}}}
	cleared := &chain.Diff{Accounts: []chain.AccountDiff{{Address: addr, Slots: []chain.SlotDiff{{Slot: key}}}}}
	wiped := &chain.Diff{Accounts: []chain.AccountDiff{{Address: addr, Changed: true, Wiped: true}}}
	again := &chain.Diff{Accounts: []chain.AccountDiff{{
		Address: addr, Changed: true, Wiped: true, Account: chain.Account{Exists: true, Nonce: 9, CodeHash: code.Hash},
		Slots: []chain.SlotDiff{{Slot: word(2), Value: word(7)}},
	}}, Codes: []chain.Code{code}}
	other := &chain.Diff{Accounts: []chain.AccountDiff{{Address: addr, Slots: []chain.SlotDiff{{Slot: word(3), Value: word(8)}}}}}
	tests := []struct {
		name   string
		layers []*chain.Diff
		slot   uint64
		nonce  uint64
	}{
		{"not touched", []*chain.Diff{other}, 5, 1},
		{"written", []*chain.Diff{written, other}, 6, 1},
		{"written zero", []*chain.Diff{written, cleared, other}, 0, 1},
		{"written again", []*chain.Diff{cleared, written}, 6, 1},
		{"wiped", []*chain.Diff{written, wiped}, 0, 0},
		{"wiped and made again", []*chain.Diff{written, again, other}, 0, 9},
		{"written after a wipe", []*chain.Diff{again, written}, 6, 9},
		{"written and cleared after a wipe", []*chain.Diff{again, written, cleared}, 0, 9},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			// As they are, and folded into one, which empty layers bring about.
			for _, empty := range []int{0, 3 * pending.MaxDepth} {
				layers := append([]*chain.Diff{}, tt.layers...)
				for range empty {
					layers = append(layers, new(chain.Diff))
				}
				view := pending.Stack(layers).On(base)
				if got, err := view.Slot(addr, key); err != nil || got != word(tt.slot) {
					t.Errorf("with %d empty layers the slot is %s, %v, want %d", empty, got, err, tt.slot)
				}
				a, err := view.Account(addr)
				if err != nil || a.Nonce != tt.nonce {
					t.Errorf("with %d empty layers the account is %+v, %v, want nonce %d", empty, a, err, tt.nonce)
				}
				if got, err := view.Code(a.CodeHash); err != nil || a.CodeHash != (chain.Hash{}) && !bytes.Equal(got, code.Bytes) {
					t.Errorf("with %d empty layers the code is %x, %v", empty, got, err)
				}
			}
		})
	}
}

// Random Diffs read through an Overlay as they do applied to the state, however
// they were folded, and after the lowest block was sealed or the highest dropped.
func TestOverlayReadsAsTheStateWould(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			base := memview.New()
			apply(t, base, randomDiff(r, base))
			states := []*memview.State{base} // after each block
			var blocks [][]*chain.Diff
			for range 3 {
				state := states[len(states)-1].Clone()
				var diffs []*chain.Diff
				for range 1 + r.IntN(60) {
					d := randomDiff(r, state)
					apply(t, state, d)
					diffs = append(diffs, d)
				}
				states, blocks = append(states, state), append(blocks, diffs)
			}
			o := pending.Stack(blocks...)
			if o.Depth() > pending.MaxDepth {
				t.Errorf("%d layers, at most %d", o.Depth(), pending.MaxDepth)
			}
			sameReads(t, o.On(states[0]), states[3])
			sameReads(t, o.Rebase().On(states[1]), states[3])
			sameReads(t, o.Rebase().Rebase().On(states[2]), states[3])
			sameReads(t, o.Cut(2).On(states[0]), states[2])
			sameReads(t, o.Cut(1).On(states[0]), states[1])
		})
	}
}

func apply(t *testing.T, s *memview.State, d *chain.Diff) {
	t.Helper()
	if err := s.Apply(d); err != nil {
		t.Fatal(err)
	}
}

const someAddresses, someSlots = 8, 6

func sameReads(t *testing.T, got, want chain.View) {
	t.Helper()
	for i := range byte(someAddresses) {
		addr := chain.Address{i}
		a, err := got.Account(addr)
		b, _ := want.Account(addr)
		if err != nil || a != b {
			t.Errorf("account %s is %+v, %v, want %+v", addr, a, err, b)
		}
		c, err := got.Code(a.CodeHash)
		if d, _ := want.Code(b.CodeHash); err != nil || !bytes.Equal(c, d) {
			t.Errorf("code of %s is %x, %v, want %x", addr, c, err, d)
		}
		for n := range uint64(someSlots) {
			v, err := got.Slot(addr, word(n))
			if w, _ := want.Slot(addr, word(n)); err != nil || v != w {
				t.Errorf("slot %d of %s is %s, %v, want %s", n, addr, v, err, w)
			}
		}
	}
}

// randomDiff returns a Diff that is valid on a state.
func randomDiff(r *rand.Rand, s *memview.State) *chain.Diff {
	d := new(chain.Diff)
	for i := range byte(someAddresses) {
		if r.IntN(3) > 0 {
			continue
		}
		addr := chain.Address{i}
		before, _ := s.Account(addr)
		a := chain.AccountDiff{Address: addr, Changed: true, Account: chain.Account{Exists: true, Nonce: before.Nonce + 1, CodeHash: before.CodeHash}}
		a.Wiped = before.Exists && r.IntN(4) == 0
		switch {
		case a.Wiped && r.IntN(2) == 0:
			a.Account = chain.Account{}
			d.Accounts = append(d.Accounts, a)
			continue
		case r.IntN(3) == 0:
			code := chain.NewCode([]byte{1 + byte(r.IntN(5))})
			a.Account.CodeHash = code.Hash
			if !hasCode(d, code.Hash) {
				d.Codes = append(d.Codes, code)
			}
		case before.Exists && r.IntN(2) == 0:
			a.Changed, a.Account = false, chain.Account{}
		}
		for n := range uint64(someSlots) {
			old, _ := s.Slot(addr, word(n))
			if a.Wiped {
				old = chain.Value{}
			}
			if value := word(uint64(r.IntN(3))); r.IntN(2) == 0 && value != old {
				a.Slots = append(a.Slots, chain.SlotDiff{Slot: word(n), Value: value})
			}
		}
		if a.Changed || a.Wiped || len(a.Slots) > 0 {
			d.Accounts = append(d.Accounts, a)
		}
	}
	d.Sort()
	return d
}

func hasCode(d *chain.Diff, hash chain.Hash) bool {
	for _, c := range d.Codes {
		if c.Hash == hash {
			return true
		}
	}
	return false
}

func TestOverlayReadsDoNotAllocate(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	base := memview.New()
	var diffs []*chain.Diff
	state := base.Clone()
	for range 10 {
		d := randomDiff(r, state)
		apply(t, state, d)
		diffs = append(diffs, d)
	}
	var view chain.View = pending.Stack(diffs).On(base)
	var failed error
	allocs := testing.AllocsPerRun(100, func() {
		for i := range byte(2 * someAddresses) {
			a, err := view.Account(chain.Address{i})
			if err != nil {
				failed = err
			}
			if _, err := view.Code(a.CodeHash); err != nil {
				failed = err
			}
			if _, err := view.Slot(chain.Address{i}, chain.Slot{31: 1}); err != nil {
				failed = err
			}
		}
	})
	if failed != nil || allocs != 0 {
		t.Errorf("reads allocate %v times, %v, want 0", allocs, failed)
	}
}
