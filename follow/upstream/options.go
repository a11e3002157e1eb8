// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"net/http"
	"time"

	"glimpse/chain"
)

// Options shape a Pool. Only URLs has no default.
type Options struct {
	// URLs are the upstreams, http, https, ws or wss. Among equals the first
	// is preferred.
	URLs []string

	// ChainID and Genesis are what every upstream must have. Where one is zero,
	// it is what the first upstream that answers has.
	ChainID uint64
	Genesis chain.Hash

	// Timeout bounds a call and SlowTimeout one that takes long, such as
	// tracing a block; 0 means 10 s and 60 s.
	Timeout, SlowTimeout time.Duration

	// MaxAnswer bounds an answer in bytes, after decompression; 0 means 128 MiB.
	MaxAnswer int64

	// BatchSize is how many calls go into one batch; 0 means 100. Less goes
	// into those for an upstream that refused one.
	BatchSize int

	// MaxConcurrent is how many exchanges with one upstream run at once; 0 means 16.
	MaxConcurrent int

	// PollEvery is how often an upstream without subscriptions is asked for its
	// head; 0 means 1 s. Half the chain's block time is a good choice.
	PollEvery time.Duration

	// SilentAfter is for how long a subscription may say nothing before its
	// upstream is asked; 0 means 10 times PollEvery.
	SilentAfter time.Duration

	// MaxLag is by how many blocks an upstream may be behind the best one and
	// still be asked; 0 means 8.
	MaxLag chain.Number

	// MinBackoff and MaxBackoff are how long an upstream rests after a first
	// and after many failures; 0 means 250 ms and 30 s. A rest is between half
	// and all of that, at random.
	MinBackoff, MaxBackoff time.Duration

	// Rounds is how often a question goes around all upstreams before its error
	// is returned; 0 means 3.
	Rounds int

	// RoundTripper carries HTTP and the handshake of WebSocket; nil means one
	// of net/http's for each upstream.
	RoundTripper http.RoundTripper
}

func (o Options) withDefaults() Options {
	orDefault(&o.Timeout, 10*time.Second)
	orDefault(&o.SlowTimeout, time.Minute)
	orDefault(&o.MaxAnswer, 128<<20)
	orDefault(&o.BatchSize, 100)
	orDefault(&o.MaxConcurrent, 16)
	orDefault(&o.PollEvery, time.Second)
	orDefault(&o.SilentAfter, 10*o.PollEvery)
	orDefault(&o.MaxLag, 8)
	orDefault(&o.MinBackoff, 250*time.Millisecond)
	orDefault(&o.MaxBackoff, 30*time.Second)
	orDefault(&o.Rounds, 3)
	return o
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
