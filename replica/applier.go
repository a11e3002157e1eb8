// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"time"

	"glimpse/chain"
)

// A Store is what an Applier applies to: an archive, and what readers see of it.
// It is used by one goroutine.
type Store interface {
	// Head returns the newest block. Hash returns that of a block up to it, Digest
	// the digest after it; a block that the store does not have is a *chain.Miss.
	Head() (chain.Ref, error)
	Hash(chain.Number) (chain.Hash, error)
	Digest(chain.Number) (Digest, error)

	// Commit adds the block after the head. It refuses with ErrMismatch, and
	// changes nothing, where the digest after it would not be the event's, or
	// where the block contradicts the store in another way.
	Commit(*Sealed) error

	// Unwind makes a block the head that is below it.
	Unwind(to chain.Number) error

	SetTags(Marks) error
	KeepFacts(*chain.Facts) error

	// Publish makes the store as it is now what readers see, and o what is
	// pre-confirmed on it, in one step; nil is nothing. Readers do not see o from
	// goodUntil on.
	Publish(o *Overlay, goodUntil time.Time) error

	// Withdraw takes back what is pre-confirmed and leaves readers the sealed
	// state that they see.
	Withdraw()
}

// An Applier is the state machine of a replica: it takes events as they come and
// keeps a Store in step with the writer's. It belongs to one goroutine.
//
// Its place is a block: the one that the writer's chain was at after the last
// durable event. While it searches for its place, and until it has caught up,
// readers keep what they see; from then on the store's head is its place, and
// everything is published as it comes. The head of the store may be above the
// place only while it catches up: events of the past say what is there already.
type Applier struct {
	chain Identity
	store Store
	now   func() time.Time

	epoch uint64
	order uint64 // of the last durable event
	found bool   // place is known
	place chain.Ref
	goal  *chain.Ref // the end of a branch that is not complete; nil where there is none
	live  bool       // it has caught up since it found its place
	marks *Marks     // to be set when the store is at the place; nil where they are
	fault error      // sticky: the store has to be built again

	recent  []sealedNote // the newest blocks that were applied, oldest first
	pending received

	// shown is what readers were given last, until shownUntil; nil where that is
	// nothing.
	shown      *Overlay
	shownUntil time.Time
}

// received is the newest pre-confirmed state that was heard of.
type received struct {
	epoch, order uint64
	overlay      *Overlay // nil where it is not known, because something was missed
	goodUntil    time.Time
}

// NewApplier returns an Applier for the store of a replica, which has to be told
// events before it shows anything new. Now is the clock; nil means time.Now.
func NewApplier(id Identity, store Store, now func() time.Time) *Applier {
	if now == nil {
		now = time.Now
	}
	return &Applier{chain: id, store: store, now: now}
}

// Place returns the block that the writer's chain was at after the last durable
// event; false while it is not known.
func (a *Applier) Place() (chain.Ref, bool) { return a.place, a.found }

// Head returns the newest block of the store, which may be above or below the
// place.
func (a *Applier) Head() (chain.Ref, error) { return a.store.Head() }

// Live reports whether readers see the place: the Applier has caught up and no
// branch is incomplete. It is false after each Gap until it has caught up again.
func (a *Applier) Live() bool { return a.live && a.goal == nil && a.fault == nil }

// Apply takes the next event.
func (a *Applier) Apply(e *Event) Decision {
	switch {
	case a.fault != nil:
		return Decision{Outcome: Mismatch, Err: a.fault}
	case e.Chain != a.chain:
		a.withdraw()
		return Decision{Outcome: Foreign, Err: fmt.Errorf("%w: it is %s, this store is of %s", ErrForeign, e.Chain, a.chain)}
	case e.Epoch < a.epoch:
		return Decision{Outcome: Outdated}
	}
	var d Decision
	if p, ok := e.Body.(*Pending); ok {
		d = a.applyPending(e, p)
	} else {
		d = a.applyDurable(e)
	}
	switch d.Outcome {
	case Mismatch:
		a.fault = d.Err
		a.lose()
	case Failed:
		a.lose()
	}
	return d
}

// applyDurable checks the order. Before the place is known any event may be the
// first.
func (a *Applier) applyDurable(e *Event) Decision {
	if a.found {
		switch {
		case e.Epoch == a.epoch && e.Order <= a.order:
			return Decision{Outcome: Known}
		case e.Epoch == a.epoch && e.Order != a.order+1, e.Epoch > a.epoch && e.Order != 1:
			return a.gap(e, "events are missing before order %d of epoch %d, the last was %d of %d", e.Order, e.Epoch, a.order, a.epoch)
		}
	}
	if e.Epoch > a.epoch {
		a.epoch = e.Epoch
		a.retire()
	}
	a.order = e.Order
	switch b := e.Body.(type) {
	case *Sealed:
		return a.applySealed(e, b)
	case *Unwound:
		return a.applyUnwound(e, b)
	case *Tags:
		return a.applyTags(b)
	case *Facts:
		return a.applyFacts(b)
	}
	return Decision{Outcome: Failed, Err: fmt.Errorf("%w: body %T", ErrEvent, e.Body)}
}

// retire takes back what a writer pre-confirmed that another has replaced.
func (a *Applier) retire() {
	if a.pending.epoch < a.epoch {
		a.pending = received{}
		a.withdraw()
	}
}

// gap gives the place up and says what lies between it and e.
func (a *Applier) gap(e *Event, format string, args ...any) Decision {
	d := Decision{Outcome: Gap, Err: fmt.Errorf(format, args...)}
	from := a.place
	if !a.found {
		if head, err := a.store.Head(); err == nil {
			from = head
		}
	}
	if at := e.At().Number; at > from.Number+1 {
		d.Missing = Range{from.Number + 1, at - 1}
	}
	a.lose()
	return d
}

// lose makes the Applier search for its place. Readers keep their sealed state.
func (a *Applier) lose() {
	a.found, a.live, a.goal, a.marks = false, false, nil, nil
	a.recent = nil
	a.withdraw()
}

// withdraw takes back what is shown as pre-confirmed.
func (a *Applier) withdraw() {
	if a.shown != nil {
		a.shown = nil
		a.store.Withdraw()
	}
}

// Restart makes the Applier search for its place, for events that are given again
// from an earlier one on. What is pre-confirmed stays until it is contradicted.
func (a *Applier) Restart() {
	a.found, a.live, a.goal, a.marks = false, false, nil, nil
	a.order, a.recent = 0, nil
	a.epoch = 0
}

// CaughtUp says that there are no durable events beyond the last one for now.
// What the store has above the place is then not the writer's and is taken back,
// and the place is what readers see. It does nothing while the place is not
// known or a branch is incomplete; Live tells.
func (a *Applier) CaughtUp() Decision {
	if !a.found || a.live || a.goal != nil || a.fault != nil {
		return Decision{Outcome: Known}
	}
	a.live = true
	if a.pending.epoch > a.epoch {
		// A writer opens its epoch in the stream before it tells what is pending,
		// so this one's stream is gone. Its successor's epoch may be lower where a
		// clock was set back.
		a.pending = received{}
		a.withdraw()
	}
	return a.settle()
}

// settle brings the store to the place and shows it, where readers may see it.
func (a *Applier) settle() Decision {
	if !a.live || a.goal != nil {
		return Decision{Outcome: Applied}
	}
	if err := a.reach(a.place); err != nil {
		return a.failed("show block %s: %w", a.place, err)
	}
	if a.marks != nil {
		if err := a.store.SetTags(*a.marks); err != nil {
			return a.failed("set tags: %w", err)
		}
		a.marks = nil
	}
	return a.show()
}

// reach unwinds the store to a block that it has.
func (a *Applier) reach(to chain.Ref) error {
	head, err := a.store.Head()
	if err != nil || head == to {
		return err
	}
	return a.store.Unwind(to.Number)
}

func (a *Applier) failed(format string, args ...any) Decision {
	return Decision{Outcome: Failed, Err: fmt.Errorf(format, args...)}
}
