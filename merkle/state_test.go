// SPDX-License-Identifier: Apache-2.0

package merkle_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"

	"glimpse/chain"
	"glimpse/internal/memview"
	"glimpse/merkle"
)

// An oracle is go-ethereum's StateDB, to which Diffs are applied as the EVM
// would.
type oracle struct {
	db   state.Database
	root common.Hash
}

func newOracle() *oracle {
	return &oracle{db: state.NewDatabaseForTesting(), root: types.EmptyRootHash}
}

func (o *oracle) apply(t testing.TB, d *chain.Diff, number int) {
	t.Helper()
	s, err := state.New(o.root, o.db)
	if err != nil {
		t.Fatal(err)
	}
	rules := params.Rules{}
	for _, a := range d.Accounts {
		nonce, balance, hash, old := s.GetNonce(a.Address), *s.GetBalance(a.Address), s.GetCodeHash(a.Address), s.GetCode(a.Address)
		if a.Wiped {
			s.SelfDestruct(a.Address)
			s.Finalise(rules)
		}
		if a.Changed && !a.Account.Exists {
			continue
		}
		if a.Changed {
			nonce, balance, hash = a.Account.Nonce, a.Account.Balance, a.Account.CodeHash
			if hash == code.Hash {
				old = code.Bytes
			}
		}
		s.SetNonce(a.Address, nonce, tracing.NonceChangeUnspecified)
		s.SetBalance(a.Address, &balance, tracing.BalanceChangeUnspecified)
		if hash == code.Hash {
			s.SetCode(a.Address, old, tracing.CodeChangeUnspecified)
		}
		for _, slot := range a.Slots {
			s.SetState(a.Address, slot.Slot, slot.Value)
		}
	}
	if o.root, err = s.Commit(rules, uint64(number)); err != nil {
		t.Fatal(err)
	}
}

func TestRootsAgreeWithGoEthereum(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			h, nodes, want := newHistory(seed), newSideMap(), newOracle()
			s := open(t, nodes)
			for n := range 60 {
				d := h.next(t)
				want.apply(t, d, n)
				got, err := s.Apply(d)
				if err != nil {
					t.Fatal(err)
				}
				if got != want.root {
					t.Fatalf("got root %s at block %d, want %s", got, n, want.root)
				}
				switch n % 5 { // commit after one or several Diffs, and reopen
				case 0, 1, 3:
					must(t, nodes.write(s.Commit(ref(n))))
				case 4:
					must(t, nodes.write(s.Commit(ref(n))))
					s = open(t, nodes)
				}
			}
			checkRebuild(t, h, nodes)
		})
	}
}

// checkRebuild expects the stored nodes to be exactly those of the flat state.
func checkRebuild(t *testing.T, h *history, nodes *sideMap) {
	t.Helper()
	at, root, _ := open(t, nodes).At()
	again := newSideMap()
	must(t, again.write([]merkle.Write{{Key: []byte("a1"), Value: []byte("left")}, {Key: []byte("s2"), Value: []byte("over")}}))
	s, err := merkle.Rebuild(h.state, again, 0, at, again.write)
	if err != nil {
		t.Fatal(err)
	}
	if ref, got, ok := s.At(); ref != at || got != root || !ok {
		t.Errorf("rebuilt to %v, %s, %v, want %v, %s", ref, got, ok, at, root)
	}
	if !again.equal(nodes.values) {
		t.Errorf("rebuilt %d nodes, want the same as the %d stored", len(again.values), len(nodes.values))
	}
}

func TestRevertLeavesNoTrace(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			h, nodes := newHistory(seed), newSideMap()
			s := open(t, nodes)
			step := func(n int) *chain.Diff {
				d := h.next(t)
				if _, err := s.Apply(d); err != nil {
					t.Fatal(err)
				}
				must(t, nodes.write(s.Commit(ref(n))))
				return d
			}
			for n := range 20 {
				step(n)
			}
			target, stored := h.state.Clone(), maps.Clone(nodes.values)
			_, root, _ := s.At()
			var unwound []*chain.Diff
			for n := 20; n < 21+int(seed); n++ {
				unwound = append(unwound, step(n))
			}
			back, err := merkle.Revert(unwound, target, target)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Apply(back)
			if err != nil {
				t.Fatal(err)
			}
			if got != root {
				t.Errorf("got root %s after going back, want %s", got, root)
			}
			must(t, nodes.write(s.Commit(ref(19))))
			if !nodes.equal(stored) {
				t.Errorf("got %d other nodes than the %d before", len(nodes.values), len(stored))
			}
		})
	}
}

func TestRevertOfAnAccountThatCameLater(t *testing.T) {
	nothing := memview.New()
	born := &chain.Diff{Accounts: []chain.AccountDiff{{
		Changed: true, Account: chain.Account{Exists: true}, Slots: []chain.SlotDiff{{Value: chain.Value{1}}},
	}}}
	back, err := merkle.Revert([]*chain.Diff{born}, nothing, nothing)
	must(t, err)
	state := nothing.Clone()
	must(t, state.Apply(born))
	must(t, state.Apply(back))
	if got := state.Diff(); !got.Empty() {
		t.Errorf("got %+v left, want nothing", got)
	}
}

func TestDiscard(t *testing.T) {
	h, nodes := newHistory(3), newSideMap()
	s := open(t, nodes)
	if _, _, ok := s.At(); ok {
		t.Error("an empty store stands at a block")
	}
	first, second := h.next(t), h.next(t)
	want, err := s.Apply(first)
	must(t, err)
	must(t, nodes.write(s.Commit(ref(1))))
	_, err = s.Apply(second)
	must(t, err)
	s.Discard()
	if at, root, ok := s.At(); at != ref(1) || root != want || !ok {
		t.Errorf("got %v, %s, %v after Discard, want %v, %s", at, root, ok, ref(1), want)
	}
	if root, err := s.Apply(new(chain.Diff)); root != want || err != nil {
		t.Errorf("got %s, %v for no change, want %s", root, err, want)
	}
}

func TestDamageIsNoticed(t *testing.T) {
	boom := errors.New("disk on fire")
	tests := []struct {
		name   string
		damage func(*sideMap)
		want   error
	}{
		{"a node that was lost", func(m *sideMap) { maps.DeleteFunc(m.values, isNode) }, chain.ErrCorrupt},
		{"a node that changed", func(m *sideMap) {
			for key := range m.values {
				if isNode(key, nil) {
					m.values[key] = append([]byte{1}, m.values[key]...)
				}
			}
		}, chain.ErrCorrupt},
		{"a read that failed", func(m *sideMap) { m.fail = boom }, boom},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, nodes := newHistory(4), newSideMap()
			s := open(t, nodes)
			for n := range 10 {
				_, err := s.Apply(h.next(t))
				must(t, err)
				must(t, nodes.write(s.Commit(ref(n))))
			}
			s = open(t, nodes)
			tt.damage(nodes)
			if _, err := s.Apply(h.next(t)); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
	nodes := newSideMap()
	must(t, nodes.write([]merkle.Write{{Key: []byte("r"), Value: []byte("short")}}))
	if _, err := merkle.Open(nodes, 0); !errors.Is(err, chain.ErrCorrupt) {
		t.Errorf("got %v for a root record cut short, want ErrCorrupt", err)
	}
}

func isNode(key string, _ []byte) bool { return strings.HasPrefix(key, "a") }

func TestSlotsWithoutAccount(t *testing.T) {
	s := open(t, newSideMap())
	d := &chain.Diff{Accounts: []chain.AccountDiff{{Slots: []chain.SlotDiff{{Value: chain.Value{1}}}}}}
	if _, err := s.Apply(d); err == nil {
		t.Error("got no error for slots of an account that does not exist")
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
