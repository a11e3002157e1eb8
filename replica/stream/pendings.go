// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"fmt"
	"time"

	"glimpse/replica"
)

// A pendingSender sends what is pre-confirmed. It belongs to one goroutine, which
// never waits for the stream.
type pendingSender struct {
	*Publisher
	epoch, order uint64
	sent         *replica.Overlay // what replicas have been told; nil where they need the whole
}

// sendPending sends each change while this writer is in charge, and the whole
// every so often for those who missed something.
func (p *Publisher) sendPending(ctx context.Context) {
	s := &pendingSender{Publisher: p}
	whole := time.NewTicker(p.settings.WholeEvery)
	defer whole.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.box.changed:
		case <-whole.C:
			s.sent = nil
		}
		if err := s.send(); err != nil {
			s.sent = nil
			p.count(func(s *PublisherStats) { s.PendingLost++ })
		}
	}
}

func (s *pendingSender) send() error {
	epoch := s.Publisher.epoch.Load()
	if epoch == 0 || !s.nc.IsConnected() {
		s.sent = nil
		return nil
	}
	if epoch != s.epoch {
		s.epoch, s.order, s.sent = epoch, 0, nil
	}
	now := s.box.take()
	if now.overlay == nil {
		return nil
	}
	e, sent := s.event(now)
	pieces, err := replica.Cut(e, s.settings.Piece, s.settings.MaxEvent)
	if err != nil {
		return err
	}
	s.order++ // also where it is lost: who misses it shall see that
	for _, data := range pieces {
		if err := s.nc.Publish(s.settings.pending(), data); err != nil {
			return fmt.Errorf("send pre-confirmed state: %w", err)
		}
		s.count(func(t *PublisherStats) { t.PendingBytes += uint64(len(data)) })
	}
	s.sent = sent
	return nil
}

// event returns what tells replicas of now, and what they have been told then.
func (s *pendingSender) event(now boxed) (*replica.Event, *replica.Overlay) {
	overlay := now.overlay
	p := &replica.Pending{Parent: overlay.Parent, Why: now.why, GoodFor: min(time.Until(now.goodUntil), time.Hour)}
	if p.GoodFor <= 0 {
		// Nobody has taken it back yet, but it is over.
		p.GoodFor = 0
		if len(overlay.Blocks) > 0 {
			p.Why = replica.Expired
			overlay = &replica.Overlay{Parent: overlay.Parent}
		}
	}
	whole := true
	if s.sent != nil {
		if parts, ok := overlay.PartsSince(s.sent); ok {
			p.Base, p.Blocks, whole = s.order, parts, false
		}
	}
	if whole {
		p.Blocks = overlay.Parts()
	}
	s.count(func(t *PublisherStats) {
		t.PendingEvents++
		if whole {
			t.PendingWhole++
		}
	})
	return &replica.Event{Chain: s.chain, Epoch: s.epoch, Order: s.order + 1, Body: p}, overlay
}
