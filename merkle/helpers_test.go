// SPDX-License-Identifier: Apache-2.0

package merkle_test

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"glimpse/chain"
	"glimpse/internal/memview"
	"glimpse/merkle"
)

// A sideMap keeps trie nodes in a map. What fail returns, if it is set, is what
// reads give.
type sideMap struct {
	mu     sync.Mutex
	values map[string][]byte
	fail   error
}

func newSideMap() *sideMap { return &sideMap{values: make(map[string][]byte)} }

func (m *sideMap) Side(key []byte) ([]byte, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, ok := m.values[string(key)]
	return value, ok, m.fail
}

func (m *sideMap) write(writes []merkle.Write) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range writes {
		switch {
		case w.Prefix:
			maps.DeleteFunc(m.values, func(key string, _ []byte) bool { return bytes.HasPrefix([]byte(key), w.Key) })
		case w.Value == nil:
			delete(m.values, string(w.Key))
		default:
			m.values[string(w.Key)] = w.Value
		}
	}
	return nil
}

func (m *sideMap) equal(other map[string][]byte) bool {
	return maps.EqualFunc(m.values, other, bytes.Equal)
}

func open(t testing.TB, nodes merkle.Nodes) *merkle.State {
	t.Helper()
	s, err := merkle.Open(nodes, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ref(n int) chain.Ref {
	return chain.Ref{Number: chain.Number(n), Hash: chain.Hash{0xb1, byte(n >> 8), byte(n)}}
}

// A history makes random Diffs, each on top of the ones before.
type history struct {
	random *rand.Rand
	state  *memview.State
}

func newHistory(seed uint64) *history {
	return &history{random: rand.New(rand.NewPCG(seed, 1)), state: memview.New()}
}

// next returns a Diff and moves on.
func (h *history) next(t testing.TB) *chain.Diff {
	t.Helper()
	d := new(chain.Diff)
	for _, n := range h.random.Perm(60)[:1+h.random.IntN(12)] {
		addr := chain.Address{0xad, byte(n)}
		before, _ := h.state.Account(addr) // a map does not fail
		change := h.accountChange(addr, before)
		if change.Account.CodeHash != (chain.Hash{}) {
			d.Codes = append(d.Codes[:0], code) // all have the same
		}
		if change.Changed || change.Wiped || len(change.Slots) > 0 {
			d.Accounts = append(d.Accounts, change)
		}
	}
	d.Sort()
	if err := h.state.Apply(d); err != nil {
		t.Fatal(err)
	}
	return d
}

var code = chain.NewCode([]byte{1, 2, 3})

func (h *history) accountChange(addr chain.Address, before chain.Account) chain.AccountDiff {
	d := chain.AccountDiff{Address: addr}
	if before.Exists {
		switch h.random.IntN(6) {
		case 0: // destroyed
			d.Changed, d.Wiped = true, true
			return d
		case 1: // destroyed and created again
			d.Wiped = true
		}
	}
	if !before.Exists || h.random.IntN(2) == 0 {
		d.Changed = true
		d.Account = chain.Account{Exists: true, Nonce: before.Nonce + 1, CodeHash: before.CodeHash}
		d.Account.Balance.SetUint64(h.random.Uint64())
		if h.random.IntN(4) == 0 {
			d.Account.CodeHash = code.Hash
		}
	}
	for _, n := range h.random.Perm(40)[:h.random.IntN(6)] {
		slot, value := chain.Slot{31: byte(n)}, chain.Value{}
		if h.random.IntN(3) > 0 {
			value[31-h.random.IntN(32)] = byte(h.random.IntN(256))
		}
		now, _ := h.state.Slot(addr, slot) // a map does not fail
		if d.Wiped {
			now = chain.Value{}
		}
		if value != now {
			d.Slots = append(d.Slots, chain.SlotDiff{Slot: slot, Value: value})
		}
	}
	return d
}

// stored applies diffs and returns the State with what it stores of them.
func stored(t testing.TB, diffs ...*chain.Diff) (*merkle.State, *sideMap) {
	t.Helper()
	nodes := newSideMap()
	s := open(t, nodes)
	for _, d := range diffs {
		_, err := s.Apply(d)
		must(t, err)
	}
	must(t, nodes.write(s.Commit(ref(1))))
	return s, nodes
}

// several returns the next so many diffs.
func (h *history) several(t testing.TB, count int) (diffs []*chain.Diff) {
	t.Helper()
	for range count {
		diffs = append(diffs, h.next(t))
	}
	return diffs
}
