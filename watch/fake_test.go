// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/watch"
)

var (
	watched = chain.Address{1}
	errDisk = errors.New("disk on fire")
)

func slot(n byte) chain.Slot { return chain.Slot{31: n} }

// write is what a block or a flashblock does to the watched address.
type write struct {
	wiped bool
	slots map[byte]byte
}

func (w write) diff() *chain.Diff {
	a := chain.AccountDiff{Address: watched, Wiped: w.wiped}
	for k, v := range w.slots {
		a.Slots = append(a.Slots, chain.SlotDiff{Slot: slot(k), Value: slot(v)})
	}
	d := &chain.Diff{Accounts: []chain.AccountDiff{a}}
	d.Sort()
	return d
}

// A fakeNode publishes snapshots and counts those that are held.
type fakeNode struct {
	mu      sync.Mutex
	current *fakeSnapshot
	held    int
	most    int
}

func (n *fakeNode) acquire() *fakeSnapshot {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.held++
	n.most = max(n.most, n.held)
	return n.current
}

func (n *fakeNode) publish(s *fakeSnapshot) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s.node, s.superseded = n, make(chan struct{})
	if n.current != nil {
		close(n.current.superseded)
	}
	n.current = s
}

func (n *fakeNode) holding() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.held
}

// A fakeSnapshot is a chain of blocks with names of one letter, and what is
// pre-confirmed on it. What a pruned block changed is not known.
type fakeSnapshot struct {
	node       *fakeNode
	superseded chan struct{}
	names      string
	writes     map[byte]write
	pending    *write
	pruned     bool
	broken     bool
}

func hashOf(name byte) chain.Hash { return chain.Hash{0: name} }

func (s *fakeSnapshot) Latest() chain.Ref {
	n := len(s.names) - 1
	return chain.Ref{Number: chain.Number(n), Hash: hashOf(s.names[n])}
}
func (s *fakeSnapshot) Stamp() []byte                           { return []byte(s.names) }
func (s *fakeSnapshot) Superseded() <-chan struct{}             { return s.superseded }
func (s *fakeSnapshot) Hash(n chain.Number) (chain.Hash, error) { return hashOf(s.names[n]), nil }
func (s *fakeSnapshot) View(chain.Selector) (chain.View, error) { return fakeView{s}, nil }
func (s *fakeSnapshot) Diff(n chain.Number) (*chain.Diff, error) {
	if s.pruned {
		return nil, &chain.Miss{Reason: chain.Pruned}
	}
	return s.writes[s.names[n]].diff(), nil
}

func (s *fakeSnapshot) at(n chain.Number) map[byte]byte {
	state := map[byte]byte{}
	for i := range n + 1 {
		w := s.writes[s.names[i]]
		if w.wiped {
			clear(state)
		}
		for k, v := range w.slots {
			state[k] = v
		}
	}
	return state
}

func (s *fakeSnapshot) Slots(sel chain.Selector, _ chain.Address, after *chain.Slot, limit int) (slots []chain.SlotDiff, more bool, err error) {
	n, _ := sel.Number()
	for k, v := range s.at(n) {
		if v != 0 && (after == nil || slot(k).Cmp(*after) > 0) {
			slots = append(slots, chain.SlotDiff{Slot: slot(k), Value: slot(v)})
		}
	}
	slices.SortFunc(slots, func(a, b chain.SlotDiff) int { return a.Slot.Cmp(b.Slot) })
	return slots[:min(limit, len(slots))], len(slots) > limit, nil
}

func (s *fakeSnapshot) Pending() (*chain.Preconfirmed, bool) {
	if s.pending == nil {
		return nil, false
	}
	return &chain.Preconfirmed{Header: &types.Header{Number: big.NewInt(int64(len(s.names)))}, Index: 3}, true
}

func (s *fakeSnapshot) PendingChanges(chain.Address) ([]chain.SlotDiff, bool) {
	if s.pending == nil {
		return nil, false
	}
	return s.pending.diff().Accounts[0].Slots, s.pending.wiped
}

func (s *fakeSnapshot) Release() {
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	s.node.held--
}

type fakeView struct{ *fakeSnapshot }

func (v fakeView) Account(chain.Address) (chain.Account, error) { return chain.Account{}, nil }
func (v fakeView) Code(chain.Hash) ([]byte, error)              { return nil, nil }
func (v fakeView) Slot(_ chain.Address, k chain.Slot) (chain.Value, error) {
	if v.broken {
		return chain.Value{}, errDisk
	}
	return slot(v.at(v.Latest().Number)[k[31]]), nil
}

// changes is a topic that tells the changes of the watched address as text, all
// of a step in one message.
type changes struct{ slots []chain.Slot }

func (c changes) Storage() (chain.Address, bool) { return watched, true }
func (c changes) Begin(s *fakeSnapshot) ([]watch.Message, error) {
	all, err := watch.Current(s, watched, c.slots)
	return render(all), err
}
func (c changes) Step(s *watch.Step[*fakeSnapshot]) ([]watch.Message, error) {
	all, err := s.Changes(watched, c.slots)
	return render(all), err
}

// render writes "slot=value tag level block" for each, with the name of the block,
// or number.index where it has none.
func render(all []*watch.Change) []watch.Message {
	text := ""
	for _, c := range all {
		at := string(c.Hash[0])
		if c.Hash == (chain.Hash{}) {
			at = fmt.Sprintf("%d.%d", c.Block, c.Index)
		}
		text += fmt.Sprintf("%d=%d %s %s %s; ", c.Slot[31], c.Value[31], c.Tag, c.Level, at)
	}
	return []watch.Message{{Text: []byte(text)}}
}

// blob is a topic that tells one message of a size at each step.
type blob struct {
	messages, size int
	fail           error
}

func (b blob) Storage() (a chain.Address, ok bool) { return a, false }
func (b blob) Begin(*fakeSnapshot) ([]watch.Message, error) {
	return nil, b.fail
}
func (b blob) Step(*watch.Step[*fakeSnapshot]) (all []watch.Message, err error) {
	for range b.messages {
		all = append(all, watch.Message{Text: make([]byte, b.size), Tail: "."})
	}
	return all, nil
}

// run starts a Watcher of n; stop ends it and waits.
func run(t *testing.T, n *fakeNode, o watch.Options) (w *watch.Watcher[*fakeSnapshot], stop func()) {
	t.Helper()
	w = watch.New(n.acquire, o)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	return w, func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v, want that of its context", err)
		}
	}
}

func subscribe(t *testing.T, w *watch.Watcher[*fakeSnapshot], topic watch.Topic[*fakeSnapshot]) *watch.Subscription {
	t.Helper()
	s, err := w.Subscribe(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func next(t *testing.T, s *watch.Subscription) string {
	t.Helper()
	text, err := s.Next(t.Context(), nil)
	if err != nil {
		return "end: " + err.Error()
	}
	return string(text)
}
