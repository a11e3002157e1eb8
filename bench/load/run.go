// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"
	"time"
)

// Options are how a server is asked.
type Options struct {
	Connections int
	Warmup      time.Duration // not measured
	Duration    time.Duration // measured

	// Seed decides which requests of the pool are sent in which order.
	Seed uint64

	// Core is the processor that the load comes from; negative leaves that to the
	// kernel.
	Core int

	// ServerCPU returns how much processor time the server took so far. It is
	// called when measuring begins and ends; nil if nobody knows.
	ServerCPU func() (time.Duration, error)
}

// A Result is what was measured.
type Result struct {
	Answers      int // good ones
	Failures     int // answers that are errors
	FirstFailure string
	Elapsed      time.Duration
	Latency      *Histogram // of good answers
	ServerCPU    time.Duration

	// OwnCPU is the processor time that the load itself took. Where it is close to
	// Elapsed, it is the load that was measured and not the server.
	OwnCPU time.Duration
}

// Throughput returns good answers per second.
func (r *Result) Throughput() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Answers) / r.Elapsed.Seconds()
}

// ErrNoRequests is returned for a pool without any.
var ErrNoRequests = errors.New("the pool has no requests")

// silence is after how long without any answer a server is given up.
const silence = 10 * time.Second

// ErrSilent is returned where no answer comes for a while.
var ErrSilent = errors.New("no answer for a while")

// maxAnswer bounds what is kept of an answer.
const maxAnswer = 64 << 20

// ErrTooLarge is returned for an answer beyond all bounds.
var ErrTooLarge = errors.New("answer is too large")

// Run asks the server at a host and port until the time is over or ctx ends,
// which is an error like a connection that breaks. Answers that are errors are
// counted and go on.
func Run(ctx context.Context, addr string, pool *Pool, o Options) (*Result, error) {
	if pool.Len() == 0 {
		return nil, ErrNoRequests
	}
	return runOnThread(ctx, addr, pool, o)
}
