// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"sync/atomic"

	"glimpse/chain"
)

// A Watcher follows the published snapshots and tells Subscriptions what
// changed. It is safe for concurrent use.
type Watcher[S Snapshot] struct {
	acquire func() S
	options Options
	total   atomic.Int64 // bytes that wait in all Subscriptions

	// joining hands a Topic to Run. It has no room: the caller waits until Run
	// takes it, within its context.
	joining chan joining[S]

	// left holds at most one signal, that a Subscription was closed: a second
	// one would say the same and is dropped.
	left chan struct{}

	stopped chan struct{} // closed when Run returns
}

// joining is a Topic and where to say what became of it. The channel has room
// for the answer, so that Run does not wait for one who went away.
type joining[S Snapshot] struct {
	topic Topic[S]
	reply chan joined
}

type joined struct {
	subscription *Subscription
	err          error
}

// New returns a Watcher of what acquire returns, which is the newest snapshot.
// It does nothing until Run is called.
func New[S Snapshot](acquire func() S, o Options) *Watcher[S] {
	return &Watcher[S]{
		acquire: acquire,
		options: o.withDefaults(),
		joining: make(chan joining[S]),
		left:    make(chan struct{}, 1),
		stopped: make(chan struct{}),
	}
}

// Subscribe registers a Topic against the snapshot that the Watcher holds: Begin
// has been called when it returns, and every Step from there on follows. The
// caller closes the Subscription. The error is that of Begin, ErrBusy, ErrStopped,
// or of ctx.
func (w *Watcher[S]) Subscribe(ctx context.Context, topic Topic[S]) (*Subscription, error) {
	j := joining[S]{topic: topic, reply: make(chan joined, 1)}
	select {
	case w.joining <- j:
	case <-w.stopped:
		return nil, ErrStopped
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	answer := <-j.reply // Run answers what it took before it does anything else
	return answer.subscription, answer.err
}

// Run follows the snapshots until ctx ends, and returns its error. It is called
// once, and the source of snapshots must outlive it.
func (w *Watcher[S]) Run(ctx context.Context) error {
	f := &follower[S]{Watcher: w, watched: make(map[chain.Address]int)}
	defer close(w.stopped)
	defer f.stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case j := <-w.joining:
			f.join(j)
		case <-w.left:
			f.sweep()
		case <-f.superseded:
			f.advance()
		}
	}
}

// A follower is the state of Run, and belongs to its goroutine.
type follower[S Snapshot] struct {
	*Watcher[S]
	members []member[S]
	watched map[chain.Address]int // how many members watch the storage of an address

	last       S               // held while there are members
	superseded <-chan struct{} // of last; nil while it is not held
}

type member[S Snapshot] struct {
	topic        Topic[S]
	subscription *Subscription
}

func (f *follower[S]) join(j joining[S]) {
	if len(f.members) >= f.options.MaxSubscriptions {
		f.sweep()
	}
	if len(f.members) >= f.options.MaxSubscriptions {
		j.reply <- joined{err: ErrBusy}
		return
	}
	if f.superseded == nil {
		f.hold(f.acquire())
	}
	messages, err := j.topic.Begin(f.last)
	if err != nil {
		j.reply <- joined{err: err}
		f.rest()
		return
	}
	s := &Subscription{options: &f.options, total: &f.total, leave: f.left, wake: make(chan struct{}, 1)}
	s.push(messages)
	if err := s.failed(); err != nil {
		j.reply <- joined{err: err}
		f.rest()
		return
	}
	f.members = append(f.members, member[S]{j.topic, s})
	if a, ok := j.topic.Storage(); ok {
		f.watched[a]++
	}
	f.relieve()
	j.reply <- joined{subscription: s}
}

// advance takes the newest snapshot and tells everybody what changed.
func (f *follower[S]) advance() {
	f.sweep()
	if f.superseded == nil {
		return
	}
	old, next := f.last, f.acquire()
	step, err := between(old, next)
	if err == nil {
		step.watched = f.watched
	}
	for _, m := range f.members {
		if err != nil {
			m.subscription.end(err)
			continue
		}
		messages, err := m.topic.Step(step)
		if err != nil {
			m.subscription.end(err)
			continue
		}
		m.subscription.push(messages)
		f.relieve()
	}
	old.Release()
	f.hold(next)
	f.sweep()
}

// relieve ends the Subscriptions with the most waiting while all of them together
// have too much.
func (f *follower[S]) relieve() {
	for f.total.Load() > int64(f.options.MaxTotalBytes) {
		var largest *Subscription
		most := 0
		for _, m := range f.members {
			if bytes := m.subscription.waiting(); bytes > most {
				largest, most = m.subscription, bytes
			}
		}
		if largest == nil {
			return // they were read meanwhile
		}
		largest.drop(ErrSlow)
	}
}

// sweep forgets members that ended.
func (f *follower[S]) sweep() {
	kept := f.members[:0]
	for _, m := range f.members {
		if m.subscription.failed() == nil {
			kept = append(kept, m)
			continue
		}
		if a, ok := m.topic.Storage(); ok {
			if f.watched[a]--; f.watched[a] == 0 {
				delete(f.watched, a)
			}
		}
	}
	clear(f.members[len(kept):])
	f.members = kept
	f.rest()
}

func (f *follower[S]) hold(s S) { f.last, f.superseded = s, s.Superseded() }

// rest lets go of the snapshot while nobody needs it.
func (f *follower[S]) rest() {
	if len(f.members) > 0 || f.superseded == nil {
		return
	}
	f.last.Release()
	var nothing S
	f.last, f.superseded = nothing, nil
}

func (f *follower[S]) stop() {
	for _, m := range f.members {
		m.subscription.end(ErrStopped)
	}
	f.members = nil
	f.rest()
}
