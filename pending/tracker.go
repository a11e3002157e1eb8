// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"slices"
	"time"

	"glimpse/chain"
	"glimpse/flashblock"
)

// Options bound a Tracker. The zero value has sensible bounds.
type Options struct {
	// MaxAge is how long pre-confirmed state is good without another
	// flashblock; 0 means 4 s, two blocks of most chains.
	MaxAge time.Duration

	// MaxAhead is how many blocks above the sealed head are kept; 0 means 5.
	MaxAhead int

	// MaxBytes is how much of flashblocks is kept; 0 means 128 MiB.
	MaxBytes int

	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.MaxAge == 0 {
		o.MaxAge = 4 * time.Second
	}
	if o.MaxAhead == 0 {
		o.MaxAhead = 5
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 128 << 20
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// A Tracker makes an Overlay of flashblocks and sealed blocks. It is the one
// writer of pre-confirmed state and belongs to one goroutine; its Overlays may be
// read by any. It never fails: what goes wrong with a flashblock or a block is an
// Event, and leaves less pre-confirmed.
type Tracker struct {
	executor Executor
	options  Options

	sealed  *anchor
	buffer  buffer
	stack   []*block // what is applied, on the sealed head; in step with overlay
	overlay *Overlay
}

// NewTracker returns a Tracker that stands on sealed and takes it over.
func NewTracker(executor Executor, sealed Sealed, o Options) *Tracker {
	t := &Tracker{executor: executor, options: o.withDefaults(), sealed: &anchor{Sealed: sealed, users: 1}}
	t.truncate(0)
	return t
}

// Close releases what is held of sealed states. The Tracker must not be used
// any more.
func (t *Tracker) Close() {
	t.truncate(0)
	t.sealed.drop()
}

// Overlay returns what is pre-confirmed now. It is never nil and stands on the
// newest sealed block that the Tracker was told.
func (t *Tracker) Overlay() *Overlay { return t.overlay }

// Flashblock takes in one flashblock, which must not be modified afterwards.
func (t *Tracker) Flashblock(m *flashblock.Message) []Event {
	verdict := flashblock.Place(t.standing(m), m)
	event := Event{Position: m.Position(), Verdict: verdict}
	switch {
	case verdict == flashblock.Stale || verdict == flashblock.Duplicate:
		event.Kind = Ignored
		return []Event{event}
	case m.Number-t.sealed.Head().Number > chain.Number(t.options.MaxAhead):
		event.Kind = Refused
		return []Event{event}
	}
	spare := func(b *build) bool { return !t.applied(b) }
	added := t.buffer.add(m, t.options.Now(), t.options.MaxBytes, spare)
	if added == nil {
		event.Kind = Refused
		return []Event{event}
	}
	t.wake()
	var events []Event
	offset := int(m.Number - t.sealed.Head().Number - 1)
	switch verdict {
	case flashblock.Replace:
		old := t.stack[offset]
		events = append(events, Event{Kind: Replaced, Position: old.position(), Withdrawn: t.truncate(offset)})
	case flashblock.Extend:
		if offset < len(t.stack)-1 {
			t.truncate(offset) // all of it is executed again below
		}
		t.buffer.retry(m.Number) // what failed above failed on less
	case flashblock.Early, flashblock.Gap:
		event.Kind = Waiting
		events = append(events, event)
	}
	if m.Index == 0 {
		t.supersede(added)
	}
	return append(events, t.advance()...)
}

// Seal takes in a block that was sealed, with the state after it, which it takes
// over. A reorg is told by its newest block alone.
func (t *Tracker) Seal(s *SealedBlock, state Sealed) []Event {
	ref := s.Ref()
	promises := make([]Promise, len(t.stack))
	for i, b := range t.stack {
		promises[i] = b.promise()
	}
	decision := Reconcile(t.sealed.Head(), promises, s)
	event := Event{Kind: sealKinds[decision.Outcome], Position: flashblock.Position{Number: ref.Number}, Withdrawn: decision.Revoked}
	if offset := ref.Number - t.sealed.Head().Number - 1; offset < chain.Number(len(t.stack)) {
		event.Position = t.stack[offset].position()
	}
	t.sealed.drop()
	t.sealed = &anchor{Sealed: state, users: 1}
	switch {
	case decision.Outcome == Keep && len(t.stack) > 0: // the same block
	case decision.Outcome == Promote && decision.Above:
		t.stack[0].base.drop()
		t.stack = t.stack[1:]
		t.overlay = t.overlay.rebase(ref)
	default:
		t.truncate(0)
	}
	t.buffer.sealed(ref.Number)
	t.wake()
	return append([]Event{event}, t.advance()...)
}

var sealKinds = map[Outcome]Kind{Keep: Kept, Promote: Promoted, Rebase: Rebased, Discard: Discarded}

// Deadline returns when Expire has something to do unless a flashblock comes
// before; false while nothing is pre-confirmed.
func (t *Tracker) Deadline() (time.Time, bool) {
	var newest time.Time
	for _, b := range t.stack {
		if b.build.arrived.After(newest) {
			newest = b.build.arrived
		}
	}
	return newest.Add(t.options.MaxAge), len(t.stack) > 0
}

// Expire drops what is pre-confirmed if nothing came for too long: absent is
// better than stale (P3).
func (t *Tracker) Expire() []Event {
	deadline, ok := t.Deadline()
	if !ok || t.options.Now().Before(deadline) {
		return nil
	}
	event := Event{Kind: Expired, Position: t.stack[len(t.stack)-1].position(), Withdrawn: t.truncate(0)}
	for _, b := range t.buffer.builds {
		b.asleep = true
	}
	return []Event{event}
}

// standing describes what is there to flashblock.Place.
func (t *Tracker) standing(m *flashblock.Message) flashblock.Standing {
	s := flashblock.Standing{Latest: t.sealed.Head(), Held: t.buffer.held(m), Void: t.buffer.isVoid(m)}
	for _, b := range t.stack {
		s.Builds = append(s.Builds, b.describe())
	}
	return s
}

func (t *Tracker) applied(b *build) bool {
	return slices.ContainsFunc(t.stack, func(x *block) bool { return x.build == b })
}

// wake lets builds whose state could not be read be tried again.
func (t *Tracker) wake() {
	for _, b := range t.buffer.builds {
		b.resting = false
	}
}

// supersede bans the other builds of the same block on the same parent: the
// sequencer has begun it anew.
func (t *Tracker) supersede(by *build) {
	parent, _ := by.parent()
	for _, b := range slices.Clone(t.buffer.builds) {
		if other, ok := b.parent(); ok && b != by && b.number == by.number && other == parent {
			t.buffer.ban(b)
		}
	}
}

// truncate drops all but the lowest n blocks of the stack and returns their
// transactions. Their flashblocks stay in the buffer.
func (t *Tracker) truncate(n int) (withdrawn []chain.Hash) {
	for _, b := range t.stack[n:] {
		withdrawn = append(withdrawn, b.hashes...)
		b.base.drop()
	}
	clear(t.stack[n:])
	t.stack = t.stack[:n]
	if n == 0 {
		t.overlay = &Overlay{parent: t.sealed.Head()}
	} else {
		t.overlay = t.overlay.cut(n)
	}
	return withdrawn
}
