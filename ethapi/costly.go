// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// callTimeout ends a message, or a search through many blocks, that takes
// longer than anybody should wait for.
const callTimeout = 5 * time.Second

// defaultCalls leaves a core for reads: they take microseconds, and would
// otherwise wait for the scheduler to interrupt something that takes seconds.
func defaultCalls() int { return max(runtime.GOMAXPROCS(0)-1, 1) }

var (
	// errLate is for a call that could not begin in time.
	errLate = errors.New("request timed out before this call could run")

	// errBusy is for a call that there is no room for, even to wait.
	errBusy = errors.New("too many calls are running: try again")
)

// maxQueued is how many costly calls may wait for their turn. Those above are
// refused at once: a queue that takes longer than anybody waits serves nobody, and
// would keep all requests that the node takes at once.
const maxQueued = 128

// costly begins a call that executes or searches. Of these at most
// Config.MaxCalls run at once, and some others wait for their turn. The context
// ends after callTimeout, or with the time of the request; done is called at the
// end.
func (s *session) costly() (ctx context.Context, done func(), err error) {
	defer s.api.queued.Add(-1)
	if s.api.queued.Add(1) > maxQueued {
		return nil, nil, errBusy
	}
	ctx, cancel := context.WithDeadline(s.ctx, s.limit())
	select {
	case s.api.calls <- struct{}{}:
		return ctx, func() {
			<-s.api.calls
			cancel()
		}, nil
	case <-ctx.Done():
		cancel()
		if s.ctx.Err() != nil {
			return nil, nil, s.ctx.Err()
		}
		return nil, nil, errLate
	}
}

// limit is when a call that begins now must have ended.
func (s *session) limit() time.Time {
	if own := time.Now().Add(callTimeout); own.Before(s.deadline) {
		return own
	}
	return s.deadline
}

// bounded makes a costly call of a method that needs no context of its own.
func bounded(run method) method {
	return func(s *session, dst []byte, args *arguments) ([]byte, error) {
		_, done, err := s.costly()
		if err != nil {
			return nil, err
		}
		defer done()
		return run(s, dst, args)
	}
}
