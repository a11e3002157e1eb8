// SPDX-License-Identifier: Apache-2.0

package merkle_test

import (
	"errors"
	"testing"

	"glimpse/chain"
	"glimpse/internal/memview"
	"glimpse/merkle"
)

// Check must find every way in which flat state and tries can part.
func TestCheckComparesTriesWithFlatState(t *testing.T) {
	addr, slot := chain.Address{1}, chain.Slot{31: 1}
	account := func(nonce uint64, slots ...chain.SlotDiff) *chain.Diff {
		return &chain.Diff{Accounts: []chain.AccountDiff{{
			Address: addr, Changed: true, Account: chain.Account{Exists: true, Nonce: nonce}, Slots: slots,
		}}}
	}
	value := func(b byte) chain.SlotDiff { return chain.SlotDiff{Slot: slot, Value: chain.Value{31: b}} }
	another := chain.SlotDiff{Slot: chain.Slot{31: 2}, Value: chain.Value{31: 1}}
	other := &chain.Diff{Accounts: []chain.AccountDiff{{Address: chain.Address{2}, Changed: true, Account: chain.Account{Exists: true}}}}

	tests := []struct {
		name        string
		tries, flat []*chain.Diff
		sound       bool
	}{
		{"the same", []*chain.Diff{account(1, value(7), another), other}, []*chain.Diff{account(1, value(7), another), other}, true},
		{"nothing at all", nil, nil, true},
		{"another nonce", []*chain.Diff{account(1)}, []*chain.Diff{account(2)}, false},
		{"another value", []*chain.Diff{account(1, value(7))}, []*chain.Diff{account(1, value(8))}, false},
		{"a slot missing in the tries", []*chain.Diff{account(1)}, []*chain.Diff{account(1, value(7))}, false},
		{"a slot too many in the tries", []*chain.Diff{account(1, value(7), another)}, []*chain.Diff{account(1, value(7))}, false},
		{"an account missing in the tries", []*chain.Diff{account(1)}, []*chain.Diff{account(1), other}, false},
		{"an account too many in the tries", []*chain.Diff{account(1), other}, []*chain.Diff{account(1)}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			nodes, flat := newSideMap(), memview.New()
			s := open(t, nodes)
			for _, d := range tt.tries {
				_, err := s.Apply(d)
				must(t, err)
			}
			must(t, nodes.write(s.Commit(ref(1))))
			for _, d := range tt.flat {
				must(t, flat.Apply(d))
			}
			err := open(t, nodes).Check(t.Context(), flat)
			if tt.sound && err != nil || !tt.sound && !errors.Is(err, chain.ErrCorrupt) {
				t.Errorf("Check = %v, want sound %v", err, tt.sound)
			}
		})
	}
}

// The tries of a random history hold its state at every block.
func TestCheckOfRandomHistory(t *testing.T) {
	h, nodes := newHistory(8), newSideMap()
	s := open(t, nodes)
	for n := range 30 {
		_, err := s.Apply(h.next(t))
		must(t, err)
		must(t, nodes.write(s.Commit(ref(n))))
		must(t, s.Check(t.Context(), h.state))
	}
}

var _ merkle.Flat = (*memview.State)(nil)
