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
	"glimpse/pending"
)

// preconfirmations keeps what is published in step with the feed and the sealed
// blocks. All that changes it comes through one mutex, so that there is one
// writer; readers take what was published and no lock (P4).
type preconfirmations struct {
	db        *archive.DB
	published *head.Publisher
	log       *slog.Logger

	mu      sync.Mutex
	tracker *pending.Tracker // guarded by mu
}

func newPreconfirmations(db *archive.DB, executor pending.Executor, o pending.Options, published *head.Publisher, log *slog.Logger) (*preconfirmations, error) {
	p := &preconfirmations{db: db, published: published, log: log}
	sealed, err := p.sealed()
	if err != nil {
		return nil, err
	}
	p.tracker = pending.NewTracker(executor, sealed, o)
	return p, p.publish()
}

// sealed returns the newest sealed block with its state.
func (p *preconfirmations) sealed() (*sealedState, error) {
	r, err := p.db.NewReader()
	if err != nil {
		return nil, err
	}
	s, err := newSealedState(r)
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

func (p *preconfirmations) receive(ctx context.Context, sub *feed.Subscription) error {
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
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report(p.tracker.Flashblock(m))
	p.publishOrLog()
}

// seal takes in that a block was sealed, or that a reorg ended with it. The
// block and what stays pre-confirmed on it are published in one step (P6).
func (p *preconfirmations) seal(block *types.Block) error {
	sealed, err := p.sealed()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report(p.tracker.Seal(pending.NewSealedBlock(block), sealed))
	return p.publish()
}

// publish must be called with mu held.
func (p *preconfirmations) publish() error {
	r, err := p.db.NewReader()
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	p.published.Publish(state{r}, p.tracker.Overlay())
	return nil
}

func (p *preconfirmations) publishOrLog() {
	if err := p.publish(); err != nil && !errors.Is(err, archive.ErrClosed) {
		p.log.Error("pre-confirmed state is not published", "err", err)
	}
}

// run drops pre-confirmed state that has become stale, until ctx ends (P3).
func (p *preconfirmations) run(ctx context.Context) error {
	const period = 100 * time.Millisecond
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		p.mu.Lock()
		if events := p.tracker.Expire(); len(events) > 0 {
			p.report(events)
			p.publishOrLog()
		}
		p.mu.Unlock()
	}
}

func (p *preconfirmations) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tracker.Close()
}

// report logs what an operator should know of.
func (p *preconfirmations) report(events []pending.Event) {
	for _, e := range events {
		switch e.Kind {
		case pending.Mismatched, pending.Invalid, pending.Unread:
			p.log.Warn("pre-confirmed state dropped", "why", e.Kind, "flashblock", e.Position, "err", e.Err)
		case pending.Discarded, pending.Expired, pending.Replaced:
			p.log.Info("pre-confirmations withdrawn", "why", e.Kind, "flashblock", e.Position, "transactions", len(e.Withdrawn))
		}
	}
}
