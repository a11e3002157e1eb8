// SPDX-License-Identifier: Apache-2.0

package replica_test

import (
	"errors"
	"testing"
	"time"

	"glimpse/chain"
	"glimpse/replica"
	"glimpse/replica/replicatest"
)

// A scene is a writer with blocks 0 to 5, a replica whose store has 0 to 3, and
// the events between them.
type scene struct {
	t       *testing.T
	writer  *replicatest.Writer
	store   *replicatest.Store
	applier *replica.Applier
	now     time.Time

	epoch, order, pendingOrder uint64
}

func newScene(t *testing.T) *scene {
	s := &scene{t: t, writer: replicatest.NewWriter(1), now: time.Unix(1000, 0), epoch: 7}
	for range 5 {
		s.writer.Seal()
	}
	s.store = replicatest.NewStore(s.writer, 3)
	s.applier = s.newApplier()
	return s
}

func (s *scene) newApplier() *replica.Applier {
	return replica.NewApplier(s.writer.ID, s.store, func() time.Time { return s.now })
}

func (s *scene) ref(n chain.Number) chain.Ref { return s.sealed(n).Ref }

func (s *scene) sealed(n chain.Number) *replica.Sealed {
	s.t.Helper()
	c, err := s.writer.Open()
	if err != nil {
		s.t.Fatal(err)
	}
	b, err := c.Sealed(n)
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

// event numbers a body as the next one.
func (s *scene) event(body replica.Body) *replica.Event {
	e := &replica.Event{Chain: s.writer.ID, Epoch: s.epoch, Body: body}
	if _, ok := body.(*replica.Pending); ok {
		s.pendingOrder++
		e.Order = s.pendingOrder
	} else {
		s.order++
		e.Order = s.order
	}
	return e
}

func (s *scene) apply(body replica.Body) replica.Decision {
	s.t.Helper()
	return s.applier.Apply(s.event(body))
}

// whole tells all that is pre-confirmed at the writer.
func (s *scene) whole() *replica.Pending {
	o := s.writer.Overlay()
	return &replica.Pending{Parent: o.Parent, GoodFor: time.Second, Blocks: o.Parts()}
}

func (s *scene) must(want replica.Outcome, d replica.Decision) {
	s.t.Helper()
	if d.Outcome != want {
		s.t.Fatalf("outcome %v (%v), want %v", d.Outcome, d.Err, want)
	}
}

// begin brings the replica to block 4, and readers with it.
func (s *scene) begin() {
	s.t.Helper()
	s.must(replica.Applied, s.apply(&replica.Unwound{To: s.ref(3), Goal: s.ref(3)}))
	s.must(replica.Applied, s.applier.CaughtUp())
	s.must(replica.Applied, s.apply(s.sealed(4)))
	s.shows(4, false)
}

func (s *scene) shows(head chain.Number, pending bool) {
	s.t.Helper()
	shown := s.store.Shown()
	if shown.Head.Number != head || (shown.Overlay != nil) != pending {
		s.t.Fatalf("readers see block %d and pending %t, want %d and %t", shown.Head.Number, shown.Overlay != nil, head, pending)
	}
}

func TestApplyDurable(t *testing.T) {
	tests := []struct {
		name string
		run  func(*scene) replica.Decision
		want replica.Outcome
		head chain.Number // that readers see afterwards
		live bool
	}{
		{"the next block is applied", func(s *scene) replica.Decision { return s.apply(s.sealed(5)) }, replica.Applied, 5, true},
		{"the same event twice is known", func(s *scene) replica.Decision {
			e := s.event(s.sealed(5))
			s.applier.Apply(e)
			return s.applier.Apply(e)
		}, replica.Known, 5, true},
		{"the same block as another event is known", func(s *scene) replica.Decision { return s.apply(s.sealed(4)) }, replica.Known, 4, true},
		{"an event that is missing is a gap", func(s *scene) replica.Decision {
			s.order++
			return s.apply(s.sealed(5))
		}, replica.Gap, 4, false},
		{"a block that does not follow is a gap", func(s *scene) replica.Decision {
			s.writer.Seal()
			return s.apply(s.sealed(6))
		}, replica.Gap, 4, false},
		{"an older epoch is outdated", func(s *scene) replica.Decision {
			s.epoch--
			return s.apply(s.sealed(5))
		}, replica.Outdated, 4, true},
		{"a new epoch begins with where it goes on", func(s *scene) replica.Decision {
			s.epoch, s.order = s.epoch+1, 0
			return s.apply(&replica.Unwound{To: s.ref(4), Goal: s.ref(4)})
		}, replica.Applied, 4, true},
		{"a new epoch that begins in the middle is a gap", func(s *scene) replica.Decision {
			s.epoch++
			return s.apply(s.sealed(5))
		}, replica.Gap, 4, false},
		{"another chain is foreign", func(s *scene) replica.Decision {
			e := s.event(s.sealed(5))
			e.Chain.ChainID++
			return s.applier.Apply(e)
		}, replica.Foreign, 4, true},
		{"another digest is a mismatch", func(s *scene) replica.Decision {
			b := s.sealed(5)
			b.Digest[0] ^= 1
			return s.apply(b)
		}, replica.Mismatch, 4, false},
		{"a store that fails has failed", func(s *scene) replica.Decision {
			s.store.Fail = func(string) error { return replicatest.ErrBroken }
			return s.apply(s.sealed(5))
		}, replica.Failed, 4, false},
		{"the end of a branch alone is not shown", func(s *scene) replica.Decision {
			s.writer.Reorganise(3, 4) // 3 to 6 are others
			return s.apply(&replica.Unwound{To: s.ref(2), Goal: s.ref(6)})
		}, replica.Applied, 4, false},
		{"half of a branch is not shown", func(s *scene) replica.Decision {
			s.writer.Reorganise(3, 4)
			s.apply(&replica.Unwound{To: s.ref(2), Goal: s.ref(6)})
			s.apply(s.sealed(3))
			return s.apply(s.sealed(4))
		}, replica.Applied, 4, false},
		{"a branch is shown with its last block", func(s *scene) replica.Decision {
			s.writer.Reorganise(3, 4)
			s.apply(&replica.Unwound{To: s.ref(2), Goal: s.ref(6)})
			for n := range chain.Number(3) {
				s.apply(s.sealed(3 + n))
			}
			return s.apply(s.sealed(6))
		}, replica.Applied, 6, true},
		{"a branch may be shorter", func(s *scene) replica.Decision {
			return s.apply(&replica.Unwound{To: s.ref(2), Goal: s.ref(2)})
		}, replica.Applied, 2, true},
		{"an end that is not on the chain is a gap", func(s *scene) replica.Decision {
			return s.apply(&replica.Unwound{To: ref(2, 99), Goal: ref(3, 99)})
		}, replica.Gap, 4, false},
		{"an end above the place is a gap", func(s *scene) replica.Decision {
			return s.apply(&replica.Unwound{To: s.ref(5), Goal: s.ref(5)})
		}, replica.Gap, 4, false},
		{"tags are set", func(s *scene) replica.Decision {
			safe := s.ref(4)
			return s.apply(&replica.Tags{Head: safe, Marks: replica.Marks{Safe: &safe}})
		}, replica.Applied, 4, true},
		{"facts are kept", func(s *scene) replica.Decision {
			return s.apply(&replica.Facts{Head: s.ref(4), Facts: new(chain.Facts)})
		}, replica.Applied, 4, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			s.begin()
			s.must(tt.want, tt.run(s))
			s.shows(tt.head, false)
			if got := s.applier.Live(); got != tt.live {
				t.Errorf("live = %t, want %t", got, tt.live)
			}
			if shown := s.store.Shown(); tt.live && shown.Digest != s.sealed(tt.head).Digest {
				t.Errorf("readers see another block %d than the writer's", tt.head)
			}
		})
	}
}

func TestGapNamesWhatIsMissing(t *testing.T) {
	s := newScene(t)
	s.begin()
	s.writer.Seal()
	s.writer.Seal()
	d := s.apply(s.sealed(7))
	if want := (replica.Range{From: 5, To: 6}); d.Outcome != replica.Gap || d.Missing != want {
		t.Errorf("got %v with %v missing, want a gap with %v", d.Outcome, d.Missing, want)
	}
}

// Whatever comes after a gap, readers see nothing new until the Applier has found
// its place and caught up.
func TestGapHeals(t *testing.T) {
	s := newScene(t)
	s.begin()
	s.order++
	s.must(replica.Gap, s.apply(s.sealed(5)))
	s.must(replica.Applied, s.apply(s.sealed(5)))
	s.shows(4, false)
	s.must(replica.Applied, s.applier.CaughtUp())
	s.shows(5, false)
}

func TestMismatchIsForGood(t *testing.T) {
	s := newScene(t)
	s.begin()
	b := s.sealed(5)
	b.Digest[0] ^= 1
	d := s.apply(b)
	if !errors.Is(d.Err, replica.ErrMismatch) {
		t.Errorf("error %v, want ErrMismatch", d.Err)
	}
	s.must(replica.Mismatch, s.apply(s.sealed(5)))
	s.applier.Restart()
	s.must(replica.Mismatch, s.apply(&replica.Unwound{To: s.ref(4), Goal: s.ref(4)}))
	s.shows(4, false)
}

func TestDamageShowsWhenABlockIsMetAgain(t *testing.T) {
	s := newScene(t)
	s.store.Damage()
	s.must(replica.Mismatch, s.apply(s.sealed(3)))
}

func TestSearching(t *testing.T) {
	tests := []struct {
		name string
		body func(*scene) replica.Body
		want replica.Outcome
	}{
		{"a block that it has", func(s *scene) replica.Body { return s.sealed(2) }, replica.Known},
		{"its head", func(s *scene) replica.Body { return s.sealed(3) }, replica.Known},
		{"the block after its head", func(s *scene) replica.Body { return s.sealed(4) }, replica.Applied},
		{"a later block", func(s *scene) replica.Body { return s.sealed(5) }, replica.Searching},
		{"where the chain goes on from a block that it has", func(s *scene) replica.Body { return &replica.Unwound{To: s.ref(2), Goal: s.ref(2)} }, replica.Applied},
		{"where the chain goes on from elsewhere", func(s *scene) replica.Body { return &replica.Unwound{To: s.ref(5), Goal: s.ref(5)} }, replica.Searching},
		{"tags at a block that it has", func(s *scene) replica.Body { return &replica.Tags{Head: s.ref(3)} }, replica.Applied},
		{"tags elsewhere", func(s *scene) replica.Body { return &replica.Tags{Head: s.ref(5)} }, replica.Searching},
		{"facts", func(s *scene) replica.Body { return &replica.Facts{Head: s.ref(5), Facts: new(chain.Facts)} }, replica.Applied},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			s.order = 40 // any event may be the first
			s.must(tt.want, s.apply(tt.body(s)))
			s.shows(3, false)
		})
	}
}

// Events of the past say what is there already: the store keeps it, and readers
// do not go back.
func TestThePastIsPassedThrough(t *testing.T) {
	s := newScene(t)
	s.store = replicatest.NewStore(s.writer, 5)
	s.applier = s.newApplier()
	for n := range chain.Number(5) {
		s.must(replica.Known, s.apply(s.sealed(1+n)))
		s.shows(5, false)
	}
	s.must(replica.Applied, s.applier.CaughtUp())
	if n := s.store.Writes(); n != 2 { // tags and publication
		t.Errorf("%d writes to a store that had everything, want 2", n)
	}
}

func TestAWriterThatStartsOverIsFollowed(t *testing.T) {
	s := newScene(t)
	s.store = replicatest.NewStore(s.writer, 5)
	s.applier = s.newApplier()
	s.must(replica.Known, s.apply(s.sealed(1)))
	s.epoch, s.order = s.epoch+1, 0
	s.must(replica.Applied, s.apply(&replica.Unwound{To: s.ref(4), Goal: s.ref(5)}))
	s.must(replica.Known, s.apply(s.sealed(5)))
	s.must(replica.Applied, s.applier.CaughtUp())
	s.shows(5, false)
}

func TestWhatIsAboveThePlaceGoesWhenCaughtUp(t *testing.T) {
	s := newScene(t)
	s.store = replicatest.NewStore(s.writer, 5)
	s.applier = s.newApplier()
	s.must(replica.Applied, s.apply(&replica.Unwound{To: s.ref(4), Goal: s.ref(4)}))
	s.shows(5, false)
	s.must(replica.Applied, s.applier.CaughtUp())
	s.shows(4, false)
}

func TestApplyPending(t *testing.T) {
	tests := []struct {
		name string
		run  func(*scene) replica.Decision
		want replica.Outcome
		show bool // something is pre-confirmed afterwards
	}{
		{"the whole is shown", func(s *scene) replica.Decision { return s.pend() }, replica.Applied, true},
		{"what was added is shown", func(s *scene) replica.Decision {
			s.pend()
			return s.add(s.pendingOrder)
		}, replica.Applied, true},
		{"the same twice is known", func(s *scene) replica.Decision {
			s.writer.Flashblock(true)
			e := s.event(s.whole())
			s.applier.Apply(e)
			return s.applier.Apply(e)
		}, replica.Known, true},
		{"the same said again is known", func(s *scene) replica.Decision {
			s.pend()
			return s.apply(s.whole())
		}, replica.Known, true},
		{"a piece that was missed withdraws all", func(s *scene) replica.Decision {
			s.pend()
			s.pendingOrder++
			return s.add(s.pendingOrder)
		}, replica.Gap, false},
		{"a piece of nothing is a gap", func(s *scene) replica.Decision {
			s.writer.Flashblock(true)
			return s.add(3)
		}, replica.Gap, false},
		{"a withdrawal withdraws", func(s *scene) replica.Decision {
			s.pend()
			s.writer.Withdraw()
			return s.apply(s.whole())
		}, replica.Applied, false},
		{"an older epoch is outdated", func(s *scene) replica.Decision {
			s.writer.Flashblock(true)
			s.epoch--
			return s.apply(s.whole())
		}, replica.Outdated, false},
		{"a newer epoch is believed", func(s *scene) replica.Decision {
			s.pend()
			s.epoch, s.pendingOrder = s.epoch+1, 0
			s.writer.Flashblock(false)
			return s.apply(s.whole())
		}, replica.Applied, true},
		{"on a block that is not here yet it waits", func(s *scene) replica.Decision {
			s.writer.Seal()
			s.writer.Flashblock(true)
			return s.apply(s.whole())
		}, replica.Waiting, false},
		{"on a block of the past it is outdated", func(s *scene) replica.Decision {
			s.writer.Flashblock(true)
			old := s.whole()
			s.writer.Reorganise(0, 1)
			s.apply(s.sealed(5))
			return s.apply(old)
		}, replica.Outdated, false},
		{"what does not fit together is a gap", func(s *scene) replica.Decision {
			s.writer.Flashblock(true)
			p := s.whole()
			p.Parent.Hash[0] ^= 1
			return s.apply(p)
		}, replica.Gap, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			s.writer.Reorganise(1, 0) // the writer is at block 4 too
			s.begin()
			s.must(tt.want, tt.run(s))
			s.shows(s.store.Shown().Head.Number, tt.show)
			if o := s.store.Shown().Overlay; tt.show && !replicatest.Equal(o, s.writer.Overlay()) {
				t.Errorf("readers see another overlay than the writer's")
			}
		})
	}
}

// pend pre-confirms something at the writer and tells the whole.
func (s *scene) pend() replica.Decision {
	s.writer.Flashblock(true)
	return s.apply(s.whole())
}

// add pre-confirms more and tells what was added to base.
func (s *scene) add(base uint64) replica.Decision {
	before := s.writer.Overlay()
	s.writer.Flashblock(false)
	s.writer.Flashblock(true)
	after := s.writer.Overlay()
	parts, ok := after.PartsSince(before)
	if !ok {
		s.t.Fatal("what was added does not continue")
	}
	return s.apply(&replica.Pending{Parent: after.Parent, Base: base, GoodFor: time.Second, Blocks: parts})
}

// twoPending has the writer at block 4 with two pre-confirmed blocks that readers
// of the replica see.
func twoPending(t *testing.T) *scene {
	s := newScene(t)
	s.writer.Reorganise(1, 0)
	s.begin()
	s.writer.Flashblock(true)
	s.writer.Flashblock(true)
	s.must(replica.Applied, s.apply(s.whole()))
	s.shows(4, true)
	return s
}

func TestWhatStandsOnASealedBlockStays(t *testing.T) {
	s := twoPending(t)
	s.writer.Seal()
	s.must(replica.Applied, s.apply(s.sealed(5)))
	s.shows(5, true)
	if !replicatest.Equal(s.store.Shown().Overlay, s.writer.Overlay()) {
		t.Error("readers see another overlay than the writer's")
	}
}

func TestABrokenPromiseWithdraws(t *testing.T) {
	s := twoPending(t)
	s.writer.Reorganise(0, 1)
	s.must(replica.Applied, s.apply(s.sealed(5)))
	s.shows(5, false)
}

// A block with the promised transactions is not yet the block that the next one
// was promised on: its state may be another.
func TestTheSameTransactionsInAnotherBlockWithdraw(t *testing.T) {
	s := twoPending(t)
	promised := s.writer.Overlay().Blocks[0].Block.Hashes
	s.writer.Reorganise(0, 1)
	b := s.sealed(5)
	b.Transactions = promised
	b.Digest = replicatest.NextDigest(s.sealed(4).Digest, b)
	s.must(replica.Applied, s.apply(b))
	s.shows(5, false)
}

func TestPendingBeforeItsBlockIsShownWithIt(t *testing.T) {
	s := twoPending(t)
	s.writer.Seal()
	s.writer.Flashblock(false)
	s.must(replica.Waiting, s.apply(s.whole()))
	s.shows(4, true) // still what it was
	s.must(replica.Applied, s.apply(s.sealed(5)))
	s.shows(5, true)
	if !replicatest.Equal(s.store.Shown().Overlay, s.writer.Overlay()) {
		t.Error("readers see another overlay than the writer's")
	}
}

func TestPendingDoesNotOutliveItsTime(t *testing.T) {
	s := twoPending(t)
	if got, want := s.store.Shown().Until, s.now.Add(time.Second); !got.Equal(want) {
		t.Errorf("good until %v, want %v", got, want)
	}
	s.now = s.now.Add(time.Second)
	s.writer.Seal()
	s.must(replica.Applied, s.apply(s.sealed(5)))
	s.shows(5, false)
}

func TestSayingItAgainDoesNotMakeItYounger(t *testing.T) {
	s := twoPending(t)
	until := s.store.Shown().Until
	s.now = s.now.Add(500 * time.Millisecond)
	s.must(replica.Known, s.apply(s.whole()))
	s.writer.Seal()
	s.must(replica.Applied, s.apply(s.sealed(5)))
	if got := s.store.Shown().Until; !got.Equal(until) {
		t.Errorf("good until %v, want %v", got, until)
	}
}

func TestAReorganisationTakesPendingAway(t *testing.T) {
	s := twoPending(t)
	s.writer.Reorganise(2, 3)
	s.must(replica.Applied, s.apply(&replica.Unwound{To: s.ref(2), Goal: s.ref(5)}))
	s.shows(4, true) // until the other branch is complete
	for n := range chain.Number(3) {
		s.must(replica.Applied, s.apply(s.sealed(3+n)))
	}
	s.shows(5, false)
}

func TestADoubtWithdrawsPending(t *testing.T) {
	tests := map[string]func(*scene){
		"a gap": func(s *scene) {
			s.order++
			s.must(replica.Gap, s.apply(s.sealed(4)))
		},
		"a failure": func(s *scene) {
			s.store.Fail = func(string) error { return replicatest.ErrBroken }
			s.writer.Seal()
			s.must(replica.Failed, s.apply(s.sealed(5)))
		},
		"a mismatch": func(s *scene) {
			s.writer.Seal()
			b := s.sealed(5)
			b.Digest[0] ^= 1
			s.must(replica.Mismatch, s.apply(b))
		},
		"another writer": func(s *scene) {
			s.epoch, s.order = s.epoch+1, 0
			s.must(replica.Applied, s.apply(&replica.Unwound{To: s.ref(4), Goal: s.ref(4)}))
		},
	}
	for name, happens := range tests {
		t.Run(name, func(t *testing.T) {
			s := twoPending(t)
			happens(s)
			s.shows(4, false)
		})
	}
}

// Where a stream is gone and a clock was set back, a writer's epoch is lower than
// one that was heard of. What counts is the stream that is read to its end.
func TestALowerEpochAfterTheStreamIsGone(t *testing.T) {
	s := twoPending(t)
	s.epoch, s.order, s.pendingOrder = s.epoch-1, 0, 0
	s.applier.Restart()
	s.must(replica.Applied, s.apply(&replica.Unwound{To: s.ref(4), Goal: s.ref(4)}))
	s.must(replica.Applied, s.applier.CaughtUp())
	s.shows(4, false)
	s.must(replica.Applied, s.apply(s.whole()))
	s.shows(4, true)
}
