// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"glimpse/chain"
	"glimpse/replica"
)

// A Journal is the writer's own store, which durable events are read from.
type Journal interface {
	// Open returns the store as it is now. The caller releases it.
	Open() (Chain, error)
}

// A Chain is the writer's store at one moment. It never changes.
type Chain interface {
	Head() chain.Ref
	Oldest() chain.Number // above it Sealed has every block
	Marks() replica.Marks

	// Hash returns that of a block up to the head; a block that is not there is
	// a *chain.Miss.
	Hash(chain.Number) (chain.Hash, error)

	// Sealed returns a block as an event, whose Marks are not looked at.
	Sealed(chain.Number) (*replica.Sealed, error)

	Release()
}

var (
	// ErrOtherWriter refuses to publish to a stream that another writer, which
	// is alive, publishes to.
	ErrOtherWriter = errors.New("another writer publishes to this stream: stop one of them, or choose another stream name")

	// ErrReplaced ends a writer that another has taken over from, while this one
	// could not be reached.
	ErrReplaced = errors.New("another writer has taken this stream over: stop one of them")
)

// A Publisher tells replicas what happens to a writer's chain. Wake, Overlay and
// Facts may be called from any goroutine at any time; they never wait for NATS.
type Publisher struct {
	settings Settings
	nc       *nats.Conn
	chain    replica.Identity
	journal  Journal
	nonce    string // makes message ids its own

	wake  chan struct{} // holds one signal that the store has changed; a second would say the same
	epoch atomic.Uint64 // of the writer in charge; 0 while this is not

	facts factQueue
	box   overlayBox

	mu    sync.Mutex
	stats PublisherStats // guarded by mu
}

// PublisherStats are numbers of a Publisher, since it began.
type PublisherStats struct {
	InCharge  bool      // it publishes, and no other writer does
	Epoch     uint64    // its own; 0 before it was in charge
	Published chain.Ref // the newest block in the stream
	Sequence  uint64    // of the last message in the stream

	Events, Messages, Bytes uint64 // durable ones that are in the stream
	Retries                 uint64 // messages that were sent again because their fate was not known
	Unwinds                 uint64 // reorganisations, and beginnings of an epoch

	PendingEvents, PendingWhole uint64 // all, and those of them that were whole
	PendingBytes                uint64
	PendingLost                 uint64 // not sent because NATS was away

	FactsDropped uint64 // facts that found the queue full

	LastError error // why it is not in charge; nil while it is
}

// NewPublisher returns a Publisher for the chain in journal, which does nothing
// before Run. The connection has ConnectOptions and stays the caller's.
func NewPublisher(nc *nats.Conn, s Settings, id replica.Identity, journal Journal) (*Publisher, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return &Publisher{
		settings: s.withDefaults(), nc: nc, chain: id, journal: journal, nonce: rand.Text(),
		wake: make(chan struct{}, 1), box: overlayBox{changed: make(chan struct{}, 1)},
	}, nil
}

// Wake says that the store has changed: another head, or other tags.
func (p *Publisher) Wake() { signal(p.wake) }

// signal leaves a signal where there is none yet.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Facts says that the store of a sparse chain has learnt f, which must not be
// modified afterwards, and before a block that relies on it. They are kept in
// memory until they are sent, within bounds: where NATS is away for long they are
// dropped and counted, and replicas learn them from the next snapshot.
func (p *Publisher) Facts(f *chain.Facts) {
	p.facts.add(f)
	signal(p.wake)
}

// Overlay says what is pre-confirmed now, on the newest sealed block, until
// goodUntil; one without blocks says that nothing is. Why is the reason where
// something was withdrawn. Only the newest is kept, and it is sent at once or
// not at all.
func (p *Publisher) Overlay(o *replica.Overlay, goodUntil time.Time, why replica.Reason) {
	p.box.put(o, goodUntil, why)
}

// Stats returns the numbers as they are now.
func (p *Publisher) Stats() PublisherStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.InCharge = p.epoch.Load() != 0
	s.FactsDropped = p.facts.droppedSoFar()
	return s
}

func (p *Publisher) count(f func(*PublisherStats)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.stats)
}

// How long Run waits after a failure, and after how long without one it begins
// with the least again.
const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = time.Second
	healthy    = 10 * time.Second
)

// Run publishes until ctx ends, and then returns nil. That NATS is away, or the
// stream gone, is a state and not a failure. It fails with ErrOtherWriter or
// ErrReplaced, and with replica.ErrForeign where the stream is of another chain:
// these need a person. It must be called once.
func (p *Publisher) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var pending sync.WaitGroup
	pending.Go(func() { p.sendPending(ctx) })
	defer pending.Wait()
	defer cancel()
	return retry(ctx, p.session, func(err error) {
		p.epoch.Store(0)
		p.count(func(s *PublisherStats) { s.LastError = err })
	}, ErrOtherWriter, ErrReplaced, replica.ErrForeign)
}

// retry calls session again and again until ctx ends or it fails with one of the
// fatal errors. Failed is told each error.
func retry(ctx context.Context, session func(context.Context) error, failed func(error), fatal ...error) error {
	wait := minBackoff
	for {
		began := time.Now()
		err := session(ctx)
		failed(err)
		if ctx.Err() != nil {
			return nil
		}
		for _, f := range fatal {
			if errors.Is(err, f) {
				return err
			}
		}
		if time.Since(began) >= healthy {
			wait = minBackoff
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		wait = min(2*wait, maxBackoff)
	}
}

// checkEvery is how often an idle Publisher looks whether its stream is there.
const checkEvery = 2 * time.Second

// session takes charge of the stream and publishes until something fails.
func (p *Publisher) session(ctx context.Context) error {
	w, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer w.close()
	answering, err := p.nc.Subscribe(p.settings.writer(), func(m *nats.Msg) {
		_ = m.Respond(fmt.Appendf(nil, "epoch %d", w.epoch)) // who asks and is gone needs no answer
	})
	if err != nil {
		return fmt.Errorf("answer for the writer: %w", err)
	}
	defer func() { _ = answering.Unsubscribe() }() // a connection that is closed has no subscriptions
	p.epoch.Store(w.epoch)
	p.count(func(s *PublisherStats) { s.Epoch, s.LastError = w.epoch, nil })
	check := time.NewTicker(checkEvery)
	defer check.Stop()
	for {
		if err := w.catchUp(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.wake:
		case <-check.C:
			if err := w.stillThere(ctx); err != nil {
				return err
			}
		}
	}
}
