// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"errors"
	"math/rand/v2"
	"time"

	"glimpse/chain"
)

// health is what is known of an endpoint. The endpoint's mutex guards it.
type health struct {
	can      *Capabilities // nil before it was probed, and where it is of another chain
	head     Head
	latency  time.Duration // a moving mean over exchanges
	failures int           // in a row, without a healthy spell between them
	failedAt time.Time
	restsTo  time.Time
	last     error // of the last failure; kept when it recovers
	lies     int
}

// Status is what is known of one upstream.
type Status struct {
	Name    string // scheme and host
	Leads   bool   // it is asked first, and Heads are its heads
	Healthy bool   // of the right chain, not resting after a failure, and not behind

	Latest  chain.Ref
	Lag     chain.Number // blocks behind the best upstream
	Latency time.Duration
	Lies    int // answers that were refused as untrue

	// Error is the last failure, nil where there was none; it may be long over.
	Error error

	// Can is nil while the upstream has not been probed, or is of another chain.
	// It must not be modified.
	Can *Capabilities
}

func (e *endpoint) snapshot() health {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state
}

func (e *endpoint) measure(took time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state.latency == 0 {
		e.state.latency = took
		return
	}
	e.state.latency += (took - e.state.latency) / 8
}

// failed lets the endpoint rest, longer with every failure. A failure after
// a healthy spell counts as a first one; a mere success does not, or an upstream
// that accepts and drops would be asked in a tight loop.
func (e *endpoint) failed(err error) {
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	s := &e.state
	s.last = err
	var lie *LieError
	if errors.As(err, &lie) {
		s.lies++
	}
	if now.Before(s.restsTo) {
		return // a failure of a call that was on its way when another failed
	}
	if now.Sub(s.failedAt) > 2*e.options.MaxBackoff {
		s.failures = 0
	}
	s.failures++
	s.failedAt = now
	rest := backoff(e.options.MinBackoff, e.options.MaxBackoff, s.failures)
	var status *StatusError
	if errors.As(err, &status) {
		rest = max(rest, min(status.RetryAfter, e.options.MaxBackoff))
	}
	s.restsTo = now.Add(rest)
}

// backoff is a random time between half and all of the smallest wait doubled
// for each failure after the first.
func backoff(least, most time.Duration, failures int) time.Duration {
	wait := least
	for range failures - 1 {
		if wait = 2 * wait; wait >= most {
			wait = most
			break
		}
	}
	return wait/2 + rand.N(wait/2+1)
}
