// SPDX-License-Identifier: Apache-2.0

package pending_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/flashblock"
	"glimpse/internal/memview"
	"glimpse/pending"
)

// A storm is a world whose feed loses, repeats and reorders flashblocks, whose
// sequencer revokes, begins anew and reorganises, and whose sealed blocks come
// late.
type storm struct {
	*world
	tracker *pending.Tracker
	wire    []func()        // what is under way to the tracker
	late    []func()        // sealed blocks that are not even that
	all     []*construction // every build there ever was
	latest  *link           // what the tracker was told last
	links   map[chain.Hash]*link
	seen    map[pending.Kind]int
	stacked int                    // how often there were several blocks
	after   func(*pending.Overlay) // called after each input
}

func newStorm(t testing.TB, seed uint64) *storm {
	config := shanghai()
	if seed%2 == 1 {
		config = cancun()
	}
	w := newWorld(t, seed, config)
	s := &storm{world: w, latest: w.head(), seen: make(map[pending.Kind]int), links: map[chain.Hash]*link{w.head().hash: w.head()}}
	s.tracker = pending.NewTracker(w.rules, w.sealed(w.head()), pending.Options{})
	return s
}

func (s *storm) start(parent *link) *construction {
	c := s.begin(parent)
	s.all = append(s.all, c)
	return c
}

// step lets the sequencer do one thing and delivers something.
func (s *storm) step() {
	r := s.random
	c := s.building
	switch n := r.IntN(100); {
	case c == nil:
		s.announce(s.start(s.head()))
	case n < 70 && c.next < 24:
		s.announce(c)
	case n < 75: // begin anew
		s.announce(s.start(s.head()))
	case n < 95:
		s.sealBlock(c)
	case len(s.chain) > 3: // take blocks back, and make one more in their place
		back := 1 + r.IntN(2)
		s.chain = s.chain[:len(s.chain)-back]
		for range back + r.IntN(2) {
			s.sealBlock(s.start(s.head()))
		}
	}
	// Mostly the next block's first flashblocks come before the sealed block.
	if r.IntN(3) == 0 || len(s.late) > 3 {
		s.wire = append(s.wire, s.late...)
		s.late = nil
	}
	for len(s.wire) > r.IntN(6) {
		next := s.wire[0]
		s.wire = s.wire[1:]
		next()
		if s.after != nil {
			s.after(s.tracker.Overlay())
		}
	}
}

func (s *storm) announce(c *construction) {
	m := c.flashblock(c.some()...)
	deliver := func() { s.count(s.tracker.Flashblock(m)) }
	switch s.random.IntN(20) {
	case 0: // lost
	case 1:
		s.wire = append(s.wire, deliver, deliver)
	case 2: // overtakes
		s.wire = slices.Insert(s.wire, s.random.IntN(len(s.wire)+1), deliver)
	default:
		s.wire = append(s.wire, deliver)
	}
}

func (s *storm) sealBlock(c *construction) {
	var revoked []chain.Hash
	if s.random.IntN(10) == 0 && len(c.txs) > 0 {
		// Later ones of any sender would not fit without it.
		for _, tx := range c.txs[s.random.IntN(len(c.txs)):] {
			revoked = append(revoked, tx.Hash())
		}
	}
	l := c.seal(revoked...)
	s.links[l.hash] = l
	state := s.sealed(l)
	s.late = append(s.late, func() {
		s.latest = l
		s.count(s.tracker.Seal(l.block(), state))
	})
}

func (s *storm) count(events []pending.Event) {
	for _, e := range events {
		s.seen[e.Kind]++
		if e.Kind == pending.Unread {
			s.t.Errorf("%s: %v", describe(e), e.Err)
		}
	}
	if len(s.tracker.Overlay().Blocks()) > 1 {
		s.stacked++
	}
}

func (s *storm) finish() {
	for _, deliver := range append(s.wire, s.late...) {
		deliver()
	}
	s.tracker.Close()
	if s.open != 0 {
		s.t.Errorf("%d sealed states were not released", s.open)
	}
}

// check holds P3 against an Overlay: it stands on what is latest, each of its
// blocks is the beginning of one build, and it reads as a fresh execution.
func (s *storm) check(o *pending.Overlay) {
	s.t.Helper()
	if o.Parent() != s.latest.ref() {
		s.t.Fatalf("the overlay stands on %s, latest is %s", o.Parent(), s.latest.ref())
	}
	state := s.latest.state.Clone()
	parent := s.latest.header
	for i, b := range o.Blocks() {
		if b.Header.Number.Uint64() != s.latest.header.Number.Uint64()+uint64(i)+1 {
			s.t.Fatalf("block %d of the overlay on %s has number %d", i, o.Parent(), b.Header.Number)
		}
		if !slices.ContainsFunc(s.all, func(c *construction) bool { return c.began(b) }) {
			s.t.Fatalf("pending block %d.%d is the beginning of no build", b.Header.Number, b.Index)
		}
		for j, tx := range b.Transactions {
			if found, index, ok := o.Transaction(tx.Hash()); !ok || found != b || index != j {
				s.t.Fatalf("transaction %d of block %d.%d is found at %d, %v", j, b.Header.Number, b.Index, index, ok)
			}
		}
		s.execute(state, parent, b)
		parent = b.Header
	}
	s.compare(o, state)
}

// began reports whether b is the beginning of the build up to its index.
func (c *construction) began(b *chain.Preconfirmed) bool {
	if c.header.ParentHash != b.Header.ParentHash || c.header.MixDigest != b.Header.MixDigest || b.Index >= c.next {
		return false
	}
	return slices.EqualFunc(b.Transactions, c.txs[:c.prefixes[b.Index]], func(x, y *types.Transaction) bool { return x.Hash() == y.Hash() })
}

func (s *storm) execute(state *memview.State, parent *types.Header, b *chain.Preconfirmed) {
	s.t.Helper()
	header := types.CopyHeader(b.Header)
	ancestors := func(n chain.Number) (chain.Hash, error) {
		for l := s.links[header.ParentHash]; l != nil; l = s.links[l.header.ParentHash] {
			if l.ref().Number == n {
				return l.hash, nil
			}
		}
		return hashBelow(nil, n)
	}
	block, err := s.rules.Rules.Begin(header, state, ancestors)
	if err != nil {
		s.t.Fatal(err)
	}
	_, receipts, err := block.Apply(b.Transactions)
	if err == nil {
		_, _, err = block.Finish(new(types.Body))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	diff, err := block.Diff()
	if err == nil {
		err = state.Apply(diff)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	tally := flashblock.NewTally()
	if err := tally.Add(receipts, receipts); err != nil || tally.ReceiptsRoot() != b.Header.ReceiptHash {
		s.t.Errorf("receipts root of %d.%d is %s, want %s, %v", b.Header.Number, b.Index, b.Header.ReceiptHash, tally.ReceiptsRoot(), err)
	}
}

// compare reads every account and slot that the world has.
func (s *storm) compare(o *pending.Overlay, want *memview.State) {
	s.t.Helper()
	view := o.On(s.latest.state)
	addrs := []chain.Address{mortal, factory, child, hashes, {1}, {0x99}}
	for _, key := range s.keys {
		addrs = append(addrs, addressOf(key))
	}
	for _, addr := range addrs {
		got, err := view.Account(addr)
		expected, _ := want.Account(addr)
		if err != nil || got != expected {
			s.t.Fatalf("account %s is %+v, %v, want %+v", addr, got, err, expected)
		}
		code, err := view.Code(got.CodeHash)
		expectedCode, _ := want.Code(expected.CodeHash)
		if err != nil || !slices.Equal(code, expectedCode) {
			s.t.Fatalf("code of %s is %x, %v, want %x", addr, code, err, expectedCode)
		}
		slots := make([]chain.Slot, 0, 40)
		for n := range uint64(8) {
			slots = append(slots, word(n))
		}
		for n := range uint64(32) {
			slots = append(slots, word(s.latest.header.Number.Uint64()-28+n))
		}
		for _, slot := range slots {
			got, err := view.Slot(addr, slot)
			expected, _ := want.Slot(addr, slot)
			if err != nil || got != expected {
				s.t.Fatalf("slot %s of %s is %s, %v, want %s", slot, addr, got, err, expected)
			}
		}
	}
}

// Whatever a feed does, pending is honest (P3).
func TestPendingIsHonestInAStorm(t *testing.T) {
	seen := make(map[pending.Kind]int)
	stacked := 0
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			s := newStorm(t, seed)
			s.after = s.check
			for range 250 {
				s.step()
			}
			s.finish()
			for kind, n := range s.seen {
				seen[kind] += n
			}
			stacked += s.stacked
		})
	}
	// A storm in which something never happens shows nothing about it.
	for _, kind := range []pending.Kind{
		pending.Applied, pending.Restored, pending.Ignored, pending.Waiting, pending.Replaced,
		pending.Promoted, pending.Rebased, pending.Discarded, pending.Kept,
	} {
		if seen[kind] < 5 {
			t.Errorf("%s happened %d times in all", kind, seen[kind])
		}
	}
	if stacked < 20 || seen[pending.Applied] < 300 {
		t.Errorf("%d flashblocks were applied, %d times there were several blocks", seen[pending.Applied], stacked)
	}
	t.Logf("happened: %v, several blocks: %d", seen, stacked)
}
