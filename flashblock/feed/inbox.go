// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"slices"
	"sync"
	"time"

	"glimpse/flashblock"
)

// An inbox is what stands between the feeds of a Client and its consumer: it lets
// each flashblock through once and keeps what the consumer has not taken. Each
// feed has bounds of its own, so that one that floods loses only its own messages.
type inbox struct {
	maxQueued, maxBytes int

	// ready holds at most one signal, that there may be something to take; a
	// second one would say the same.
	ready  chan struct{}
	closed chan struct{}

	mu    sync.Mutex
	seen  map[piece]sighting // guarded by mu; what the feeds remember
	feeds []*line            // guarded by mu
	turn  int                // guarded by mu; the feed that is asked first
}

// A piece is what feeds may send twice. The block number is part of the content:
// a payload id belongs to one block.
type piece struct {
	payload flashblock.PayloadID
	index   uint64
}

type sighting struct {
	content flashblock.Fingerprint
	feed    int // that brought it
}

// A line is what is kept for one feed.
type line struct {
	FeedStats
	queue  []*flashblock.Message // in the order in which they came
	bytes  int
	memory []piece // what this feed brought first; a ring once it is full
	oldest int
}

// remembered is how many pieces of each feed are known again, which are those of
// some minutes. What comes later than that is a duplicate to others too.
const remembered = 1024

func newInbox(names []string, maxQueued, maxBytes int) *inbox {
	b := &inbox{
		maxQueued: maxQueued,
		maxBytes:  maxBytes,
		ready:     make(chan struct{}, 1),
		closed:    make(chan struct{}),
		seen:      make(map[piece]sighting),
	}
	for _, name := range names {
		b.feeds = append(b.feeds, &line{FeedStats: FeedStats{Name: name}})
	}
	return b
}

// An arrival is what became of a message.
type arrival struct {
	disagreed bool
	dropped   []flashblock.Position
}

// put takes in a message of a feed.
func (b *inbox) put(feed int, m *flashblock.Message, now time.Time) arrival {
	content := m.Fingerprint() // before the lock: it reads all of m
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.feeds[feed]
	l.Messages++
	l.LastMessage = now
	key := piece{m.Payload, m.Index}
	if known, ok := b.seen[key]; ok {
		if known.content == content {
			l.Duplicates++
			return arrival{}
		}
		l.Disagreements++
		return arrival{disagreed: true}
	}
	b.remember(feed, key, content)
	l.queue = append(l.queue, m)
	l.bytes += m.Size()
	a := arrival{dropped: b.trim(l)}
	l.Dropped += uint64(len(a.dropped))
	select {
	case b.ready <- struct{}{}:
	default:
	}
	return a
}

// remember must be called with mu held.
func (b *inbox) remember(feed int, key piece, content flashblock.Fingerprint) {
	if l := b.feeds[feed]; len(l.memory) < remembered {
		l.memory = append(l.memory, key)
	} else {
		old := l.memory[l.oldest]
		if b.seen[old].feed == feed { // else it was dropped, and brought by another
			delete(b.seen, old)
		}
		l.memory[l.oldest] = key
		l.oldest = (l.oldest + 1) % remembered
	}
	b.seen[key] = sighting{content: content, feed: feed}
}

// trim drops what there is no room for and must be called with mu held. What was
// dropped may come again from another feed.
func (b *inbox) trim(l *line) (dropped []flashblock.Position) {
	for len(l.queue) > b.maxQueued || l.bytes > b.maxBytes {
		at := leastUseful(l.queue)
		m := l.queue[at]
		l.queue = slices.Delete(l.queue, at, at+1)
		l.bytes -= m.Size()
		delete(b.seen, piece{m.Payload, m.Index})
		dropped = append(dropped, m.Position())
	}
	return dropped
}

// leastUseful returns which message to drop: of the lowest block, which is the
// first to be sealed, the build that came first, which is the one to be replaced,
// and of that the last piece, because those before it are of use without it.
func leastUseful(queue []*flashblock.Message) int {
	at := 0
	for i, m := range queue {
		switch best := queue[at]; {
		case m.Number < best.Number:
			at = i
		case m.Number == best.Number && m.Payload == best.Payload && m.Index >= best.Index:
			at = i
		}
	}
	return at
}

// take returns the next message, or false. Feeds are asked in turn, so that none
// waits for more than one message of each other.
func (b *inbox) take() (*flashblock.Message, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.feeds {
		at := (b.turn + i) % len(b.feeds)
		l := b.feeds[at]
		if len(l.queue) == 0 {
			continue
		}
		m := l.queue[0]
		l.queue = slices.Delete(l.queue, 0, 1)
		l.bytes -= m.Size()
		b.turn = at + 1
		return m, true
	}
	return nil, false
}

func (b *inbox) next(ctx context.Context) (*flashblock.Message, error) {
	for {
		if m, ok := b.take(); ok {
			return m, nil
		}
		select {
		case <-b.ready:
		case <-b.closed:
			if m, ok := b.take(); ok {
				return m, nil
			}
			return nil, ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// close must be called once, when nothing is put any more.
func (b *inbox) close() { close(b.closed) }

// update lets a feed change its statistics.
func (b *inbox) update(feed int, change func(*FeedStats)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.feeds[feed].FeedStats)
}

func (b *inbox) stats() (s Stats) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.feeds {
		s.Feeds = append(s.Feeds, l.FeedStats)
		s.add(l.FeedStats)
	}
	return s
}

func (s *Stats) add(f FeedStats) {
	if f.Connected {
		s.Connected++
	}
	if f.LastMessage.After(s.LastMessage) {
		s.LastMessage = f.LastMessage
	}
	s.Messages += f.Messages
	s.Duplicates += f.Duplicates
	s.Disagreements += f.Disagreements
	s.Dropped += f.Dropped
	s.Bad += f.Bad
	s.Ends += f.Ends
	s.Reconnects += f.Reconnects
}
