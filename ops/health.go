// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"sync/atomic"
	"time"
)

// HealthOptions say what a healthy node is.
type HealthOptions struct {
	// BlockLimit and FeedLimit are the longest healthy silence of blocks and of
	// the flashblocks feed. Zero is none, for a node whose chain stands still,
	// or which has no feed.
	BlockLimit time.Duration
	FeedLimit  time.Duration

	// StoreErrorFor is how long a node is unready after a failed read. Zero
	// means 10 s: longer than a load balancer takes to notice, so that a disk
	// that fails now and then does not go unnoticed.
	StoreErrorFor time.Duration

	// Replica is asked how a replica is doing, in the manner of Heads; nil is a
	// node that is none.
	Replica func() ReplicaFacts

	// Heads returns what there is to answer from; ok is false while there is
	// nothing. It must be safe for concurrent use, and must not panic. Nil is a
	// node that never has anything.
	Heads func() (h Heads, ok bool)
}

const defaultStoreErrorFor = 10 * time.Second

// Health remembers what the readiness of a node depends on. Metrics tells it
// what arrives.
type Health struct {
	options HealthOptions
	started time.Time

	draining    atomic.Bool
	block       atomic.Pointer[time.Time] // pointers, to keep the monotonic clock
	message     atomic.Pointer[time.Time]
	applied     atomic.Pointer[time.Time]
	storeFailed atomic.Pointer[StoreFailure]
}

// NewHealth returns the Health of a node that starts now.
func NewHealth(o HealthOptions) *Health {
	if o.StoreErrorFor <= 0 {
		o.StoreErrorFor = defaultStoreErrorFor
	}
	return &Health{options: o, started: time.Now()}
}

// Drain makes the node unready for good. It is the first step of stopping.
func (h *Health) Drain() { h.draining.Store(true) }

// Facts returns what is known now.
func (h *Health) Facts() Facts {
	var heads *Heads
	if h.options.Heads != nil {
		// First, because it may be what finds out that the store fails.
		if found, ok := h.options.Heads(); ok {
			heads = &found
		}
	}
	f := Facts{
		Started:  h.started,
		Heads:    heads,
		Draining: h.draining.Load(),
		Blocks:   Arrivals{Last: load(&h.block), Limit: h.options.BlockLimit},
		Feed:     Arrivals{Last: load(&h.message), Limit: h.options.FeedLimit},
		Applied:  load(&h.applied),
	}
	if s := h.storeFailed.Load(); s != nil {
		f.StoreFailure = *s
	}
	if h.options.Replica != nil {
		replica := h.options.Replica()
		f.Replica = &replica
	}
	return f
}

// maxFailureText bounds what is kept and shown of an error.
const maxFailureText = 300

func (h *Health) storeReadFailed(err error) {
	text := err.Error()
	if len(text) > maxFailureText {
		text = text[:maxFailureText] + "…"
	}
	h.storeFailed.Store(&StoreFailure{At: time.Now(), Text: text, Clears: h.options.StoreErrorFor})
}

func now(p *atomic.Pointer[time.Time]) {
	t := time.Now()
	p.Store(&t)
}

func load(p *atomic.Pointer[time.Time]) time.Time {
	if t := p.Load(); t != nil {
		return *t
	}
	return time.Time{}
}
