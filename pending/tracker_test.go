// SPDX-License-Identifier: Apache-2.0

package pending_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/flashblock"
	"glimpse/flashblock/feed"
	"glimpse/pending"
)

// A scene is a world and a tracker that follows it.
type scene struct {
	*world
	tracker *pending.Tracker
	options pending.Options
	log     []string // what happened, since it was last looked at
}

func newScene(t *testing.T, o pending.Options) *scene {
	t.Helper()
	w := newWorld(t, 1, cancun())
	s := &scene{world: w, tracker: pending.NewTracker(w.rules, w.sealed(w.head()), o), options: o}
	t.Cleanup(func() {
		s.tracker.Close()
		if w.open != 0 {
			t.Errorf("%d sealed states were not released", w.open)
		}
	})
	return s
}

func (s *scene) note(events []pending.Event) {
	for _, e := range events {
		s.log = append(s.log, describe(e))
	}
}

// describe writes numbers as they are above the first block.
func describe(e pending.Event) string {
	text := e.Kind.String()
	if e.Verdict != 0 {
		text += "/" + e.Verdict.String()
	}
	text += fmt.Sprintf(" %d.%d", e.Position.Number-firstNumber, e.Position.Index)
	if len(e.Withdrawn) > 0 {
		text += fmt.Sprintf(" -%d", len(e.Withdrawn))
	}
	return text
}

func (s *scene) send(messages ...*flashblock.Message) {
	for _, m := range messages {
		s.note(s.tracker.Flashblock(m))
	}
}

func (s *scene) deliver(l *link) { s.note(s.tracker.Seal(l.block(), s.sealed(l))) }

// expect compares what happened, and what slot 1 of the contract holds on
// pending.
func (s *scene) expect(want string, slot1 uint64) {
	s.t.Helper()
	if got := strings.Join(s.log, ", "); got != want {
		s.t.Errorf("happened: %s\nwant:     %s", got, want)
	}
	s.log = nil
	if got := s.slot(1); got != slot1 {
		s.t.Errorf("slot 1 is %d on pending, want %d", got, slot1)
	}
}

func (s *scene) slot(n uint64) uint64 {
	s.t.Helper()
	o := s.tracker.Overlay()
	for _, l := range s.chain {
		if l.ref() == o.Parent() {
			v, err := o.On(l.state).Slot(mortal, word(n))
			if err != nil {
				s.t.Fatal(err)
			}
			return v.Big().Uint64()
		}
	}
	s.t.Fatalf("the overlay stands on %s, which is not of the chain", o.Parent())
	return 0
}

// The event table of flashblocks feeds: each event and what becomes of pending.
func TestTrackerEvents(t *testing.T) {
	tests := []struct {
		name string
		play func(*scene)
	}{
		{"in order", func(s *scene) {
			c := s.begin(s.head())
			s.send(c.flashblock(c.write(1, 5)))
			s.expect("applied 1.0", 5)
			s.send(c.flashblock(), c.flashblock(c.write(1, 6)))
			s.expect("applied 1.1, applied 1.2", 6)
			s.deliver(c.seal())
			s.expect("promoted 1.2", 6)
		}},
		{"a duplicate", func(s *scene) {
			c := s.begin(s.head())
			m := c.flashblock(c.write(1, 5))
			s.send(m, m)
			s.expect("applied 1.0, ignored/duplicate 1.0", 5)
		}},
		{"a gap freezes, and the missing piece goes on", func(s *scene) {
			c := s.begin(s.head())
			first, second, third := c.flashblock(c.write(1, 5)), c.flashblock(c.write(1, 6)), c.flashblock(c.write(1, 7))
			s.send(first, third)
			s.expect("applied 1.0, waiting/gap 1.2", 5)
			s.send(second)
			s.expect("applied 1.1, applied 1.2", 7)
		}},
		{"index 0 comes last", func(s *scene) {
			c := s.begin(s.head())
			first, second := c.flashblock(c.write(1, 5)), c.flashblock(c.write(1, 6))
			s.send(second)
			s.expect("waiting/gap 1.1", 0)
			s.send(first)
			s.expect("applied 1.0, applied 1.1", 6)
		}},
		{"a block whose gap is never filled", func(s *scene) {
			c := s.begin(s.head())
			first, _, third := c.flashblock(c.write(1, 5)), c.flashblock(c.write(1, 6)), c.flashblock(c.write(1, 7))
			s.send(first, third)
			l := c.seal()
			d := s.begin(l)
			s.send(d.flashblock(d.write(1, 8)))
			s.expect("applied 1.0, waiting/gap 1.2, waiting/early 2.0", 5)
			s.deliver(l)
			s.expect("rebased 1.0, applied 2.0", 8)
		}},
		{"another payload id replaces, and the one before is void", func(s *scene) {
			c := s.begin(s.head())
			first, second := c.flashblock(c.write(1, 5)), c.flashblock(c.write(1, 6))
			d := s.begin(s.head())
			s.send(first, d.flashblock(d.write(2, 9)))
			s.expect("applied 1.0, replaced 1.0 -1, applied 1.0", 0)
			s.send(second, first)
			s.expect("ignored/stale 1.1, ignored/stale 1.0", 0)
			s.send(d.flashblock(d.write(1, 8)))
			s.expect("applied 1.1", 8)
		}},
		{"pieces of two builds never mix", func(s *scene) {
			c := s.begin(s.head())
			s.send(c.flashblock(c.write(1, 5)))
			d := s.begin(s.head())
			d.flashblock(d.write(2, 9))
			s.send(d.flashblock(d.write(1, 8)))
			s.expect("applied 1.0, waiting/gap 1.1", 5)
		}},
		{"index 0 before its parent", func(s *scene) {
			c := s.begin(s.head())
			l := c.seal()
			d := s.begin(l)
			s.send(d.flashblock(d.write(1, 5)), d.flashblock(d.write(1, 6)))
			s.expect("waiting/early 2.0, waiting/early 2.1", 0)
			s.deliver(l)
			s.expect("kept 1.0, applied 2.0, applied 2.1", 6)
		}},
		{"the next block before this one is sealed", func(s *scene) {
			c := s.begin(s.head())
			s.send(c.flashblock(c.write(1, 5)), c.flashblock(c.write(2, 5)))
			l := c.seal()
			d := s.begin(l)
			s.send(d.flashblock(d.write(1, 6)))
			s.expect("applied 1.0, applied 1.1, applied 2.0", 6)
			s.deliver(l)
			s.expect("promoted 1.1", 6)
			s.send(d.flashblock(d.write(1, 7)))
			s.expect("applied 2.1", 7)
		}},
		{"the next block before the end of this one", func(s *scene) {
			c := s.begin(s.head())
			first, second := c.flashblock(c.write(1, 5)), c.flashblock(c.write(2, 5))
			l := c.seal()
			d := s.begin(l)
			s.send(first, d.flashblock(d.call(1, mortal, pair(1, 6)...)))
			s.expect("applied 1.0, applied 2.0", 6)
			s.send(second)
			s.expect("restored 1.0, applied 1.1, restored 2.0", 6)
		}},
		{"the next block does not execute on part of this one", func(s *scene) {
			c := s.begin(s.head())
			first, second := c.flashblock(c.write(1, 5)), c.flashblock(c.write(2, 5))
			l := c.seal()
			d := s.begin(l)
			s.send(first, d.flashblock(d.write(1, 6))) // its nonce is too high
			s.expect("applied 1.0, invalid 2.0", 5)
			s.send(second)
			s.expect("restored 1.0, applied 1.1, applied 2.0", 6)
		}},
		{"more than five blocks ahead", func(s *scene) {
			for range 5 {
				s.begin(s.head()).seal()
			}
			c := s.begin(s.head())
			m := c.flashblock()
			s.send(m)
			s.expect("refused/early 6.0", 0)
		}},
		{"a mismatch drops the block, for good", func(s *scene) {
			c := s.begin(s.head())
			s.send(c.flashblock(c.write(1, 5)))
			bad := c.flashblock(c.write(1, 6))
			bad.Delta.GasUsed++
			s.send(bad)
			s.expect("applied 1.0, mismatched 1.1 -1", 0)
			s.send(c.flashblock(c.write(1, 7)))
			s.expect("ignored/stale 1.2", 0)
		}},
		{"a wrong receipts root", func(s *scene) {
			m := s.begin(s.head()).flashblock()
			m.Delta.ReceiptsRoot[0]++
			s.send(m)
			s.expect("mismatched 1.0", 0)
		}},
		{"a wrong bloom", func(s *scene) {
			m := s.begin(s.head()).flashblock()
			m.Delta.LogsBloom[0]++
			s.send(m)
			s.expect("mismatched 1.0", 0)
		}},
		{"a transaction that is none", func(s *scene) {
			m := s.begin(s.head()).flashblock()
			m.Delta.Transactions = [][]byte{{0x7e, 1, 2}}
			s.send(m)
			s.expect("invalid 1.0", 0)
		}},
		{"the state cannot be read for a while", func(s *scene) {
			c := s.begin(s.head())
			s.send(c.flashblock(c.write(1, 5)))
			s.rules.broken = errors.New("disk on fire")
			s.send(c.flashblock(c.call(1, mortal, pair(1, 6)...)))
			s.expect("applied 1.0, unread 1.1 -1", 0)
			s.rules.broken = nil
			s.send(c.flashblock(c.write(1, 7)))
			s.expect("waiting/gap 1.2, restored 1.0, applied 1.1, applied 1.2", 7)
		}},
		{"a revoked transaction", func(s *scene) {
			c := s.begin(s.head())
			last := c.call(1, mortal, pair(1, 6)...)
			s.send(c.flashblock(c.write(1, 5)), c.flashblock(last))
			s.deliver(c.seal(last.Hash()))
			s.expect("applied 1.0, applied 1.1, discarded 1.1 -1", 5)
		}},
		{"a revoked transaction, and the next block goes on from what was sealed", func(s *scene) {
			c := s.begin(s.head())
			last := c.call(1, mortal, pair(1, 6)...)
			s.send(c.flashblock(c.write(1, 5)), c.flashblock(last))
			l := c.seal(last.Hash())
			d := s.begin(l)
			// It reads as good on what was pre-confirmed, as its checksums do not
			// tell the difference.
			s.send(d.flashblock(d.write(2, 5)))
			s.deliver(l)
			s.expect("applied 1.0, applied 1.1, applied 2.0, discarded 1.1 -1, restored 2.0", 5)
		}},
		{"a reorg", func(s *scene) {
			before := s.head()
			s.deliver(s.begin(before).seal())
			c := s.begin(s.head())
			s.send(c.flashblock(c.write(1, 5)))
			s.expect("kept 1.0, applied 2.0", 5)
			s.chain = s.chain[:1]
			d := s.begin(before)
			d.flashblock(d.write(1, 9))
			s.deliver(d.seal())
			s.expect("discarded 1.0 -1", 9)
		}},
		{"flashblocks of the other branch before the reorg", func(s *scene) {
			before := s.head()
			old := s.begin(before).seal()
			s.deliver(old)
			s.chain = s.chain[:1]
			l := s.begin(before).seal()
			c := s.begin(l)
			s.send(c.flashblock(c.write(1, 5)))
			s.deliver(l)
			s.expect("kept 1.0, waiting/early 2.0, kept 1.0, applied 2.0", 5)
		}},
		{"flashblocks of a sealed block", func(s *scene) {
			c := s.begin(s.head())
			first, second := c.flashblock(c.write(1, 5)), c.flashblock()
			s.send(first)
			s.deliver(c.seal())
			s.send(second, first)
			s.expect("applied 1.0, promoted 1.0, ignored/stale 1.1, ignored/stale 1.0", 5)
		}},
		{"several blocks sealed at once", func(s *scene) {
			c := s.begin(s.head())
			s.send(c.flashblock(c.write(1, 5)))
			d := s.begin(c.seal())
			s.send(d.flashblock(d.write(1, 6)))
			e := s.begin(d.seal())
			s.send(e.flashblock(e.write(1, 7)))
			s.deliver(s.head())
			s.expect("applied 1.0, applied 2.0, applied 3.0, rebased 2.0, restored 3.0", 7)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.play(newScene(t, pending.Options{})) })
	}
}

func TestTrackerExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, pending.Options{MaxAge: 2 * time.Second})
		if _, ok := s.tracker.Deadline(); ok {
			t.Error("there is a deadline while nothing is pre-confirmed")
		}
		c := s.begin(s.head())
		s.send(c.flashblock(c.write(1, 5)))
		wait(t, time.Second)
		s.send(c.flashblock())
		wait(t, 2*time.Second-1)
		s.note(s.tracker.Expire())
		s.expect("applied 1.0, applied 1.1", 5)
		if at, ok := s.tracker.Deadline(); !ok || time.Until(at) != 1 {
			t.Errorf("Deadline is in %v, %v, want 1ns", time.Until(at), ok)
		}
		wait(t, 1)
		s.note(s.tracker.Expire())
		s.expect("expired 1.1 -1", 0)

		// Words of before do not bring it back, a new one does.
		s.note(s.tracker.Seal(s.head().block(), s.sealed(s.head())))
		s.expect("kept 0.0", 0)
		s.send(c.flashblock(c.write(1, 6)))
		s.expect("waiting/gap 1.2, restored 1.0, restored 1.1, applied 1.2", 6)
	})
}

// What waited for its parent too long is stale as well.
func TestTrackerDoesNotReplayWhatIsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, pending.Options{MaxAge: 2 * time.Second})
		l := s.begin(s.head()).seal()
		c := s.begin(l)
		s.send(c.flashblock(c.write(1, 5)))
		wait(t, 2*time.Second)
		s.deliver(l)
		s.expect("waiting/early 2.0, kept 1.0", 0)
	})
}

// wait lets virtual time go by.
func wait(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal("the test ended")
	}
}

func TestTrackerIsBounded(t *testing.T) {
	t.Run("in bytes", func(t *testing.T) {
		s := newScene(t, pending.Options{MaxBytes: 64 << 10})
		c := s.begin(s.head())
		first := c.flashblock()
		refused := 0
		for i := range uint64(1000) {
			m := *first
			m.Base, m.Index = nil, i+2
			for _, e := range s.tracker.Flashblock(&m) {
				if e.Kind == pending.Refused {
					refused++
				}
			}
		}
		if refused < 900 {
			t.Errorf("%d of 1000 pieces with 64 KiB of room were refused", refused)
		}
	})
	t.Run("in builds, the oldest first", func(t *testing.T) {
		s := newScene(t, pending.Options{})
		c := s.begin(s.head())
		s.send(c.flashblock(c.write(1, 5)))
		for range 1000 {
			d := s.begin(s.head())
			m := d.flashblock()
			m.Base, m.Index = nil, 3
			for _, e := range s.tracker.Flashblock(m) {
				if e.Kind != pending.Waiting {
					t.Fatal(describe(e))
				}
			}
		}
		s.log = nil
		s.send(c.flashblock(c.write(1, 6)))
		s.expect("applied 1.1", 6)
	})
}

// BLOCKHASH of blocks that are not sealed is the hash that they will have, as the
// blocks above them say.
func TestHashesOfPendingBlocks(t *testing.T) {
	s := newScene(t, pending.Options{})
	c := s.begin(s.head())
	s.send(c.flashblock(c.write(1, 5)))
	d := s.begin(c.seal())
	s.send(d.flashblock())
	e := s.begin(d.seal())
	var asked []*types.Transaction
	for n := range uint64(4) {
		number := word(firstNumber - 1 + n)
		asked = append(asked, e.call(0, hashes, number[:]...))
	}
	s.send(e.flashblock(asked...))
	s.expect("applied 1.0, applied 2.0, applied 3.0", 5)
	old, err := hashBelow(nil, firstNumber-1)
	if err != nil {
		t.Fatal(err)
	}
	view := s.tracker.Overlay().On(s.chain[0].state)
	for n, want := range []chain.Hash{old, s.chain[0].hash, s.chain[1].hash, s.chain[2].hash} {
		number := word(firstNumber - 1 + uint64(n))
		if got, err := view.Slot(hashes, number); err != nil || got != want {
			t.Errorf("hash of block %d is %s, %v, want %s", firstNumber-1+n, got, err, want)
		}
	}
}

// A node's own pending takes the way of a remote one: what a feed sends, decoded
// again, with what the feed was told to do to it.
func TestTrackerFollowsAFeed(t *testing.T) {
	s := newScene(t, pending.Options{})
	publisher := feed.NewPublisher(feed.Options{Brotli: true})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- publisher.Run(ctx) }()
	defer func() { cancel(); <-done }()
	sub, err := publisher.Subscribe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	c := s.begin(s.head())
	must(publisher.Publish(ctx, c.flashblock(c.write(1, 5))))
	must(publisher.Reorder(ctx, 2))
	must(publisher.Duplicate(ctx, 1))
	for value := range uint64(3) {
		must(publisher.Publish(ctx, c.flashblock(c.write(1, 6+value))))
	}
	for range 5 {
		m, err := sub.Next(ctx)
		must(err)
		s.send(m)
	}
	s.expect("applied 1.0, waiting/gap 1.2, applied 1.1, applied 1.2, applied 1.3, ignored/duplicate 1.3", 8)
}

// The block and its transactions are told as they are pre-confirmed.
func TestOverlayTellsItsBlocks(t *testing.T) {
	s := newScene(t, pending.Options{})
	if b, ok := s.tracker.Overlay().Preconfirmed(); ok {
		t.Errorf("block %v is pre-confirmed before any came", b.Header.Number)
	}
	c := s.begin(s.head())
	s.send(c.flashblock(c.write(1, 5)), c.flashblock(c.write(2, 5), c.write(3, 5)))
	d := s.begin(c.seal())
	s.send(d.flashblock(), d.flashblock(d.write(4, 5)))
	o := s.tracker.Overlay()
	newest, ok := o.Preconfirmed()
	if !ok || newest.Header.Number.Uint64() != firstNumber+2 || newest.Index != 1 || len(newest.Transactions) != 1 || len(newest.Receipts) != 1 {
		t.Fatalf("newest block is %+v, %v", newest, ok)
	}
	if newest.Header.ParentHash != d.parent.hash || newest.Header.GasUsed != d.tally.GasUsed || newest.Header.ReceiptHash != d.tally.ReceiptsRoot() {
		t.Errorf("header is %+v", newest.Header)
	}
	blocks := o.Blocks()
	if len(blocks) != 2 || blocks[1] != newest || len(blocks[0].Transactions) != 3 {
		t.Fatalf("blocks are %+v", blocks)
	}
	for i, b := range blocks {
		for j, tx := range b.Transactions {
			got, index, ok := o.Transaction(tx.Hash())
			if !ok || got != b || index != j || b.Receipts[j].TxHash != tx.Hash() || b.Receipts[j].BlockHash != (chain.Hash{}) {
				t.Errorf("transaction %d of block %d is found as %d of %v, %v", j, i, index, got, ok)
			}
		}
	}
	if _, _, ok := o.Transaction(chain.Hash{1}); ok {
		t.Error("a transaction that never was is found")
	}
	code, err := o.On(s.chain[0].state).Code(chain.NewCode(mortalCode).Hash)
	if err != nil || !bytes.Equal(code, mortalCode) {
		t.Errorf("code below is %x, %v", code, err)
	}
}
