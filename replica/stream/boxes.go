// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"sync"
	"time"

	"glimpse/chain"
	"glimpse/replica"
)

// An overlayBox holds the newest Overlay.
type overlayBox struct {
	changed chan struct{} // holds one signal that there is another; a second would say the same

	mu  sync.Mutex
	now boxed // guarded by mu
}

type boxed struct {
	overlay   *replica.Overlay // nil before the first
	goodUntil time.Time
	why       replica.Reason // since it was last taken
}

func (b *overlayBox) put(o *replica.Overlay, goodUntil time.Time, why replica.Reason) {
	b.mu.Lock()
	if why == replica.NotWithdrawn {
		why = b.now.why // what nobody was told yet
	}
	b.now = boxed{o, goodUntil, why}
	b.mu.Unlock()
	signal(b.changed)
}

func (b *overlayBox) take() boxed {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now
	b.now.why = replica.NotWithdrawn
	return now
}

// maxFacts is how many values wait to be sent, a few tens of megabytes with their
// codes. What comes when it is full is dropped.
const maxFacts = 1 << 16

// A factQueue holds facts until they are sent.
type factQueue struct {
	mu      sync.Mutex
	waiting []*chain.Facts // guarded by mu, like the others
	size    int
	dropped uint64
}

func factSize(f *chain.Facts) int {
	n := len(f.Accounts) + len(f.Slots)
	for _, c := range f.Codes {
		n += 1 + len(c.Bytes)/512
	}
	return n
}

func (q *factQueue) add(f *chain.Facts) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.size+factSize(f) > maxFacts {
		q.dropped++
		return
	}
	q.size += factSize(f)
	q.waiting = append(q.waiting, f)
}

// peek returns the oldest; false where there is none. Drop takes it away when it
// is sent.
func (q *factQueue) peek() (*chain.Facts, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return nil, false
	}
	return q.waiting[0], true
}

func (q *factQueue) drop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.size -= factSize(q.waiting[0])
	q.waiting[0] = nil
	q.waiting = q.waiting[1:]
}

func (q *factQueue) droppedSoFar() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}
