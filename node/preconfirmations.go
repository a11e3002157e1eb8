// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/archive"
	"glimpse/flashblock"
	"glimpse/flashblock/feed"
	"glimpse/head"
	"glimpse/ops"
	"glimpse/pending"
	"glimpse/replica"
)

// preconfirmations keeps what is published in step with the feed and the sealed
// blocks. All that changes it comes through one mutex, so that there is one
// writer; readers take what was published and no lock (P4).
type preconfirmations struct {
	db        *archive.DB
	reading   reading
	published *head.Publisher
	metrics   *ops.Metrics
	log       *slog.Logger

	// renewed holds at most one signal, that the deadline of what is
	// published may be another; a second one would say the same.
	renewed chan struct{}

	publishing *publishing // nil without replicas

	mu      sync.Mutex
	tracker *pending.Tracker // guarded by mu
	latest  *archive.Reader  // guarded by mu: the store at the block that the tracker was told last
	why     replica.Reason   // guarded by mu: of what was withdrawn and not published yet
}

func newPreconfirmations(db *archive.DB, how reading, executor pending.Executor, o pending.Options, s *service) (*preconfirmations, error) {
	p := &preconfirmations{
		db: db, reading: how, published: s.published, metrics: s.metrics, log: s.log, publishing: s.publishing,
		renewed: make(chan struct{}, 1),
	}
	sealed, err := p.sealed()
	if err != nil {
		return nil, err
	}
	p.keep(sealed.Reader)
	p.tracker = pending.NewTracker(executor, sealed, o)
	return p, p.publish()
}

// keep must be called with mu held. The reference to r stays the caller's.
func (p *preconfirmations) keep(r *archive.Reader) {
	r.Retain() // it succeeds: the caller holds it
	if p.latest != nil {
		p.latest.Release()
	}
	p.latest = r
}

// sealed returns the newest sealed block with its state.
func (p *preconfirmations) sealed() (*sealedState, error) {
	r, err := p.db.NewReader()
	if err != nil {
		return nil, err
	}
	s, err := newSealedState(r, p.reading)
	if err != nil {
		r.Release()
	}
	return s, err
}

// follow takes in what comes over a feed until ctx ends, and calls subscribed when
// it will miss nothing any more. Messages that were lost because this node did
// not keep up leave a gap, which the tracker sees.
func (p *preconfirmations) follow(ctx context.Context, source *feed.Publisher, subscribed func()) error {
	for {
		sub, err := source.Subscribe(ctx)
		if err != nil {
			return untilDone(ctx, err)
		}
		subscribed()
		err = p.receive(ctx, sub)
		sub.Close()
		if !errors.Is(err, feed.ErrLagging) {
			return untilDone(ctx, err)
		}
		p.log.Warn("feed of pre-confirmations interrupted", "err", err)
	}
}

func (p *preconfirmations) receive(ctx context.Context, sub feed.Source) error {
	for {
		m, err := sub.Next(ctx)
		switch {
		case errors.Is(err, flashblock.ErrMessage):
			p.log.Warn("flashblock refused", "err", err)
		case err != nil:
			return err
		default:
			p.flashblock(m)
		}
	}
}

// untilDone is the error of something that ends when ctx does.
func untilDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (p *preconfirmations) flashblock(m *flashblock.Message) {
	p.metrics.FeedMessage()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report(p.tracker.Flashblock(m))
	p.publishOrLog()
}

// seal takes in that a block was sealed, or that a reorg of so many blocks ended
// with it. The block and what stays pre-confirmed on it are published in one step
// (P6).
func (p *preconfirmations) seal(block *pending.SealedBlock, removed int) error {
	sealed, err := p.sealed()
	if err != nil {
		return err
	}
	p.metrics.Block()
	if removed > 0 {
		p.metrics.Reorg(removed)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keep(sealed.Reader)
	p.report(p.tracker.Seal(block, sealed))
	return p.publish()
}

// promised returns the block of a header, where it was pre-confirmed exactly so.
func (p *preconfirmations) promised(h *types.Header) (pending.Fulfilled, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	done, ok, err := p.tracker.Promised(h)
	if err != nil {
		p.log.Warn("pre-confirmed block cannot be used", "block", h.Number, "err", err)
	}
	return done, ok
}

// publish must be called with mu held.
func (p *preconfirmations) publish() error {
	r, err := p.newest()
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	goodUntil, _ := p.tracker.Deadline() // of nothing, where there is none
	p.publishing.show(r, p.tracker.Overlay(), goodUntil, p.why)
	p.why = replica.NotWithdrawn
	p.published.Publish(p.reading.state(r), p.tracker.Overlay(), goodUntil)
	select {
	case p.renewed <- struct{}{}:
	default:
	}
	return nil
}

// newest returns the store with its newest tags, at the block that the tracker was
// told last. The store itself may be further: in the middle of a reorganisation,
// which is to be seen as one step (P6), or at a block that what is pre-confirmed
// does not stand on yet (P3).
func (p *preconfirmations) newest() (*archive.Reader, error) {
	r, err := p.db.NewReader()
	if err != nil || r.Head() == p.latest.Head() {
		return r, err
	}
	r.Release()
	p.latest.Retain() // it succeeds: it is held here
	return p.latest, nil
}

func (p *preconfirmations) publishOrLog() {
	if err := p.publish(); err != nil && !errors.Is(err, archive.ErrClosed) {
		p.log.Error("pre-confirmed state is not published", "err", err)
	}
}

// run drops pre-confirmed state that has become stale, until ctx ends. Readers do
// not depend on it (P3): it tells those who wait for something new.
func (p *preconfirmations) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.renewed:
		case <-timer.C:
		}
		if deadline, ok := p.expire(); ok {
			timer.Reset(time.Until(deadline))
		}
	}
}

// expire drops what is stale and returns when something will be.
func (p *preconfirmations) expire() (next time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if events := p.tracker.Expire(); len(events) > 0 {
		p.report(events)
		p.publishOrLog()
	}
	return p.tracker.Deadline()
}

func (p *preconfirmations) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tracker.Close()
	p.latest.Release()
}

// withdrawals are why something is not pre-confirmed any more, as replicas are told.
var withdrawals = map[pending.Kind]replica.Reason{
	pending.Discarded: replica.Revoked, pending.Expired: replica.Expired, pending.Replaced: replica.Replaced,
	pending.Mismatched: replica.Dropped, pending.Invalid: replica.Dropped, pending.Unread: replica.Dropped,
}

// report counts what happened, and logs what an operator should know of.
func (p *preconfirmations) report(events []pending.Event) {
	for _, e := range events {
		p.metrics.Flashblock(e.Kind)
		if why, ok := withdrawals[e.Kind]; ok {
			p.why = why
		}
		switch e.Kind {
		case pending.Mismatched, pending.Invalid, pending.Unread:
			p.log.Warn("pre-confirmed state dropped", "why", e.Kind, "flashblock", e.Position, "err", e.Err)
		case pending.Discarded, pending.Expired, pending.Replaced:
			p.log.Info("pre-confirmations withdrawn", "why", e.Kind, "flashblock", e.Position, "transactions", len(e.Withdrawn))
			if e.Kind == pending.Discarded {
				p.metrics.Revoked(len(e.Withdrawn))
			}
		}
	}
}
