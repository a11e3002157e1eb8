// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"errors"

	"glimpse/chain"
	"glimpse/flashblock"
)

// advance applies all that fits on what is there, and returns what it did.
func (t *Tracker) advance() (events []Event) {
	for {
		b := t.next()
		if b == nil {
			return events
		}
		events = append(events, t.apply(b))
	}
}

// next returns the build whose next piece can be applied, nil if there is none:
// the build on top of the stack goes on, or another block begins.
func (t *Tracker) next() *build {
	latest, applied := t.sealed.Head(), chain.Number(len(t.stack))
	if applied > 0 {
		top := t.stack[applied-1]
		if top.build.messages[top.next()] != nil && t.ready(top.build) {
			return top.build
		}
	}
	var best *build
	for _, b := range t.buffer.builds {
		if b.number != latest.Number+applied+1 || !t.ready(b) || b.sealedOnly && applied > 0 {
			continue
		}
		// Of several builds, the one that was begun last.
		if first := b.messages[0]; first != nil && t.placed(first) && (best == nil || b.begun > best.begun) {
			best = b
		}
	}
	return best
}

// placed reports whether an index 0 that is held stands on what is there.
func (t *Tracker) placed(first *flashblock.Message) bool {
	s := t.standing(first)
	s.Held = false
	return flashblock.Place(s, first) == flashblock.NewBlock
}

// ready reports whether a build may be executed: a feed that fell silent does not
// become good again because its last words can be placed now.
func (t *Tracker) ready(b *build) bool {
	return !b.asleep && !b.resting && t.options.Now().Before(b.arrived.Add(t.options.MaxAge))
}

// apply executes the next piece of a build that next returned. Whatever goes
// wrong is told by the Event, and leaves the build so that next does not return
// it again at once.
func (t *Tracker) apply(b *build) Event {
	top := len(t.stack) - 1
	if top >= 0 && t.stack[top].build == b {
		if !t.stack[top].finished {
			return t.applyNext(t.stack[top])
		}
		// What follows its last transaction is executed already, for a block above
		// that is gone. It has to begin again.
		t.truncate(top)
		top--
	}
	if top >= 0 {
		if err := t.finish(t.stack[top]); err != nil {
			return t.fail(t.stack[top].build, top, t.stack[top].position(), err)
		}
	}
	return t.applyFirst(b)
}

// applyFirst begins the block of a build on top of the stack.
func (t *Tracker) applyFirst(b *build) Event {
	m := b.messages[0]
	x, err := t.begin(b)
	if err != nil {
		return t.fail(b, len(t.stack), m.Position(), err)
	}
	s, err := x.execute(m, t.state())
	if err != nil {
		x.base.drop()
		return t.fail(b, len(t.stack), m.Position(), err)
	}
	t.stack = append(t.stack, x)
	t.overlay = t.overlay.push(s.block, s.diff)
	return Event{Kind: b.show(m.Index), Position: m.Position()}
}

// applyNext goes on with the block on top of the stack.
func (t *Tracker) applyNext(x *block) Event {
	m := x.build.messages[x.next()]
	s, err := x.execute(m, t.state())
	if err != nil {
		return t.fail(x.build, len(t.stack)-1, m.Position(), err)
	}
	t.overlay = t.overlay.extend(s.block, s.diff, s.from)
	return Event{Kind: x.build.show(m.Index), Position: m.Position()}
}

// show returns whether a piece was applied for the first time.
func (b *build) show(index uint64) Kind {
	if index < b.shown {
		return Restored
	}
	b.shown = index + 1
	return Applied
}

// fail drops the stack from depth on, where b is or would have been.
func (t *Tracker) fail(b *build, depth int, position flashblock.Position, err error) Event {
	event := Event{Position: position, Err: err, Kind: Invalid}
	event.Withdrawn = t.truncate(depth)
	var mismatch *flashblock.MismatchError
	switch {
	case t.executor.Transient(err):
		event.Kind = Unread
		b.resting = true
		return event
	case errors.As(err, &mismatch):
		event.Kind = Mismatched
	}
	if depth > 0 {
		// Its parent is not sealed, and more may belong to it than came here.
		b.sealedOnly = true
	} else {
		t.buffer.ban(b)
	}
	return event
}
