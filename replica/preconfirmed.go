// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"slices"
	"time"
)

// applyPending takes in what is pre-confirmed and shows it where it stands on
// what readers see.
func (a *Applier) applyPending(e *Event, p *Pending) Decision {
	if e.Epoch < a.pending.epoch {
		return Decision{Outcome: Outdated}
	}
	if e.Epoch == a.pending.epoch && e.Order <= a.pending.order {
		return Decision{Outcome: Known}
	}
	base := &Overlay{Parent: p.Parent}
	if p.Base != 0 {
		base = a.pending.overlay
		if e.Epoch != a.pending.epoch || p.Base != a.pending.order || base == nil || base.Parent != p.Parent {
			return a.missed(e, fmt.Errorf("pre-confirmed state %d adds to %d, the last was %d", e.Order, p.Base, a.pending.order))
		}
	}
	overlay, err := base.add(p.Blocks)
	if err != nil {
		return a.missed(e, err)
	}
	next := received{epoch: e.Epoch, order: e.Order, overlay: overlay, goodUntil: a.now().Add(p.GoodFor)}
	if e.Epoch == a.pending.epoch && overlay.same(a.pending.overlay) {
		// Said again for those who missed it. Its age is what it was.
		next.overlay, next.goodUntil = a.pending.overlay, a.pending.goodUntil
		a.pending = next
		return Decision{Outcome: Known}
	}
	a.pending = next
	return a.showPending()
}

// missed forgets what is pre-confirmed until the next whole event: what was not
// heard may have been a withdrawal.
func (a *Applier) missed(e *Event, err error) Decision {
	a.pending = received{epoch: e.Epoch, order: e.Order}
	a.withdraw()
	return Decision{Outcome: Gap, Err: err}
}

// showPending shows what was heard last, if it says something about what readers
// see.
func (a *Applier) showPending() Decision {
	if !a.Live() || a.ahead() {
		// What readers see is the writer's state of a moment ago. It stays until
		// its block comes or its time is over.
		return Decision{Outcome: Waiting}
	}
	o, goodUntil := a.fitting()
	if o == nil && a.shown == nil {
		if a.pending.overlay.Parent != a.place {
			return Decision{Outcome: Outdated}
		}
		return Decision{Outcome: Applied}
	}
	return a.publish(o, goodUntil)
}

// ahead reports whether the newest that was heard of stands on a block that is
// not here yet.
func (a *Applier) ahead() bool {
	return a.pending.overlay != nil && a.pending.overlay.Parent.Number > a.place.Number
}

// show publishes the store, and what is pre-confirmed on it.
func (a *Applier) show() Decision { return a.publish(a.fitting()) }

func (a *Applier) publish(o *Overlay, goodUntil time.Time) Decision {
	if err := a.store.Publish(o, goodUntil); err != nil {
		return a.failed("publish block %s: %w", a.place, err)
	}
	a.shown, a.shownUntil = o, goodUntil
	return Decision{Outcome: Applied}
}

// fitting returns what is pre-confirmed on the place, nil where nothing is known
// to be.
func (a *Applier) fitting() (*Overlay, time.Time) {
	from, until := a.pending.overlay, a.pending.goodUntil
	if a.ahead() {
		from, until = a.shown, a.shownUntil
	}
	if from == nil || !a.now().Before(until) {
		return nil, time.Time{}
	}
	for i := range a.recent {
		if s := &a.recent[i]; s.Number == from.Parent.Number+1 {
			next, ok := from.rebase(s)
			if !ok {
				return nil, time.Time{}
			}
			from = next
		}
	}
	if from.Parent != a.place || len(from.Blocks) == 0 {
		return nil, time.Time{}
	}
	return from, until
}

// same reports whether both say the same. Diffs of one flashblock of one build
// are the same.
func (o *Overlay) same(other *Overlay) bool {
	return other != nil && o.Parent == other.Parent && slices.EqualFunc(o.Blocks, other.Blocks, func(a, b OverlayBlock) bool {
		return a.Block.Index == b.Block.Index && len(a.Layers) == len(b.Layers) &&
			slices.Equal(a.Block.Hashes, b.Block.Hashes) && a.Block.Header.Hash() == b.Block.Header.Hash()
	})
}
