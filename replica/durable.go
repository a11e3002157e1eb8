// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"errors"
	"fmt"

	"glimpse/chain"
)

// keepRecent is how many applied blocks are remembered: pre-confirmed state that
// is further behind is worth nothing.
const keepRecent = 8

// has reports whether a block is on the store's chain. What is before the first
// block of the store is not.
func (a *Applier) has(ref chain.Ref) (bool, error) {
	head, err := a.store.Head()
	if err != nil || ref.Number > head.Number {
		return false, err
	}
	hash, err := a.store.Hash(ref.Number)
	var miss *chain.Miss
	if errors.As(err, &miss) {
		return false, nil
	}
	return hash == ref.Hash, err
}

func (a *Applier) applySealed(e *Event, s *Sealed) Decision {
	have, err := a.has(s.Ref)
	if err != nil {
		return a.failed("look for block %s: %w", s.Ref, err)
	}
	if !a.found {
		if d, ok := a.attach(s, have); !ok {
			return d
		}
	}
	switch {
	case s.Ref == a.place:
		return Decision{Outcome: Known}
	case s.Parent != a.place.Hash || s.Number != a.place.Number+1:
		return a.gap(e, "block %s does not follow %s", s.Ref, a.place)
	}
	if have {
		if err := a.compare(s); err != nil {
			return a.refused(err)
		}
	} else if err := a.commit(s); err != nil {
		return a.refused(err)
	}
	return a.arrive(s, have)
}

// attach finds the place by a block: one that the store has, or the one after its
// head.
func (a *Applier) attach(s *Sealed, have bool) (d Decision, ok bool) {
	head, err := a.store.Head()
	if err != nil {
		return a.failed("look for the head: %w", err), false
	}
	switch {
	case have:
		if err := a.compare(s); err != nil {
			return a.refused(err), false
		}
		a.place = s.Ref
	case s.Parent == head.Hash && s.Number == head.Number+1:
		a.place = head
	default:
		d = Decision{Outcome: Searching}
		if s.Number > head.Number+1 {
			d.Missing = Range{head.Number + 1, s.Number - 1}
		}
		return d, false
	}
	a.found = true
	return Decision{}, true
}

// compare checks a block that the store has already. Where it was restarted in
// the middle of something, this is where that would show.
func (a *Applier) compare(s *Sealed) error {
	d, err := a.store.Digest(s.Number)
	if err != nil {
		return fmt.Errorf("digest of block %s: %w", s.Ref, err)
	}
	if d != s.Digest {
		return mismatch("digest %s after block %s, the writer's is %s", d, s.Ref, s.Digest)
	}
	return nil
}

// commit takes back what is above the place and adds the block. Readers see
// nothing of it before settle.
func (a *Applier) commit(s *Sealed) error {
	if err := a.reach(a.place); err != nil {
		return fmt.Errorf("unwind to %s: %w", a.place, err)
	}
	if err := a.store.Commit(s); err != nil {
		return fmt.Errorf("block %s: %w", s.Ref, err)
	}
	return a.compare(s)
}

func (a *Applier) refused(err error) Decision {
	if errors.Is(err, ErrMismatch) {
		return Decision{Outcome: Mismatch, Err: err}
	}
	return Decision{Outcome: Failed, Err: err}
}

// arrive makes a block of the store the place.
func (a *Applier) arrive(s *Sealed, have bool) Decision {
	a.place = s.Ref
	a.marks = &s.Marks
	if len(a.recent) == keepRecent {
		a.recent = append(a.recent[:0], a.recent[1:]...)
	}
	a.recent = append(a.recent, sealedNote{Ref: s.Ref, parent: s.Parent, transactions: s.Transactions})
	if a.goal != nil && *a.goal == a.place {
		a.goal = nil
	}
	d := a.settle()
	if have && d.Outcome == Applied {
		d.Outcome = Known
	}
	return d
}

// applyUnwound goes to any block that the store has. While it catches up that may
// be one above the place: a writer whose store does not reach back to the end of
// the stream starts over.
func (a *Applier) applyUnwound(e *Event, u *Unwound) Decision {
	have, err := a.has(u.To)
	switch {
	case err != nil:
		return a.failed("look for block %s: %w", u.To, err)
	case !a.found && !have:
		d := Decision{Outcome: Searching}
		if head, err := a.store.Head(); err == nil && u.To.Number > head.Number {
			d.Missing = Range{head.Number + 1, u.To.Number}
		}
		return d
	case !have:
		return a.gap(e, "the writer goes on from block %s, which is not on the chain of %s", u.To, a.place)
	}
	a.found, a.place, a.goal = true, u.To, nil
	if u.Goal != u.To {
		goal := u.Goal
		a.goal = &goal
	}
	a.recent = nil
	if a.marks != nil { // they may be of what was taken back
		a.marks = &Marks{Safe: upTo(a.marks.Safe, u.To), Finalized: upTo(a.marks.Finalized, u.To)}
	}
	return a.settle()
}

// upTo forgets a mark that is above a block.
func upTo(mark *chain.Ref, limit chain.Ref) *chain.Ref {
	if mark == nil || mark.Number > limit.Number {
		return nil
	}
	return mark
}

func (a *Applier) applyTags(t *Tags) Decision {
	if d, ok := a.attachAt(t.Head); !ok {
		return d
	}
	a.marks = &t.Marks
	return a.settle()
}

// attachAt finds the place by an event that says where the chain is.
func (a *Applier) attachAt(at chain.Ref) (d Decision, ok bool) {
	if a.found {
		return Decision{}, true
	}
	have, err := a.has(at)
	switch {
	case err != nil:
		return a.failed("look for block %s: %w", at, err), false
	case !have:
		return Decision{Outcome: Searching}, false
	}
	a.found, a.place = true, at
	return Decision{}, true
}

// applyFacts keeps them at once, also while searching: they are about the first
// block and never change.
func (a *Applier) applyFacts(f *Facts) Decision {
	if err := a.store.KeepFacts(f.Facts); err != nil {
		return a.refused(fmt.Errorf("keep facts: %w", err))
	}
	return Decision{Outcome: Applied}
}
