// SPDX-License-Identifier: Apache-2.0

package head

import (
	"context"

	"glimpse/chain"
)

// AcquireAtLeast takes a Lease on the first snapshot that has reached progress:
// the current one, or one that is published before ctx ends. Otherwise the error
// is a *chain.Miss with the reason chain.NotYet, or ErrClosed. Who waits holds
// no snapshot. The caller must Release the Lease.
func (p *Publisher) AcquireAtLeast(ctx context.Context, progress chain.Progress) (*Lease, error) {
	for {
		l := p.acquire()
		if l == nil {
			return nil, ErrClosed
		}
		if progress.ReachedBy(l.Latest().Number, l.state.preconfirmed()) {
			return l, nil
		}
		superseded, miss := l.Superseded(), l.miss(chain.NotYet)
		l.Release()
		select {
		case <-superseded:
		case <-ctx.Done():
			return nil, miss
		}
	}
}

// Stamp names the snapshot (P7): "<number>:<hash>" of the latest block, then
// ";pending=<number>.<index>" of the last flashblock, or ";pending=latest". It
// must not be modified, and is good for ever.
func (l *Lease) Stamp() []byte { return l.state.stamp }

// Superseded returns a channel that is closed when another snapshot is
// published, or the Publisher closed. It stays valid after Release.
func (l *Lease) Superseded() <-chan struct{} { return l.state.superseded }
