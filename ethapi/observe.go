// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"runtime"
	"time"

	"glimpse/chain"
	"glimpse/jsonrpc"
)

// An Observer counts what an API does. It is safe for concurrent use.
type Observer interface {
	// Method returns who is told of the calls of one method. It is asked once
	// for each when the API is made; the empty name stands for all methods that
	// do not exist.
	Method(name string) CallObserver

	// ReadFailed is told of a failure that is nobody's mistake.
	ReadFailed(error)
}

// A CallObserver is told of every call of one method: the block parameter, nil
// where it has none; the code of the error, 0 for a result; and the time that it
// took. The Selector must not be kept.
type CallObserver interface {
	Observe(block *chain.Selector, code int, took time.Duration)
}

// blind is an Observer that looks away.
type blind struct{}

func (blind) Method(string) CallObserver                  { return blind{} }
func (blind) ReadFailed(error)                            {}
func (blind) Observe(*chain.Selector, int, time.Duration) {}

// observe counts the call that ended now, and logs one that was slow. The clock of
// the session is read once for each call: the end of one is the beginning of the
// next.
func (s *session) observe(m *namedMethod, failed *jsonrpc.Error) {
	now := time.Now()
	took := now.Sub(s.clock)
	s.clock = now
	var block *chain.Selector
	if s.args.hasBlock {
		block = &s.args.selector
	}
	code := 0
	if failed != nil {
		code = failed.Code
	}
	m.observer.Observe(block, code, took)
	s.yield(now)
	if slow := s.api.config.Slow; slow > 0 && took >= slow {
		s.logSlow(m, block, code, took)
	}
}

// patience is for how long the calls of one batch may have a core to themselves.
const patience = 100 * time.Microsecond

// yield lets other requests go first when this one has had its share. The scheduler
// would interrupt a long batch only after 10 ms, and a hundred of them would keep a
// short read waiting for half a second.
func (s *session) yield(now time.Time) {
	if now.Sub(s.yielded) > patience {
		s.yielded = now
		runtime.Gosched()
	}
}

// logSlow tells which block a parameter meant, since by the time that somebody
// reads it latest is another one.
func (s *session) logSlow(m *namedMethod, block *chain.Selector, code int, took time.Duration) {
	attributes := []any{"method", m.name, "code", code, "took", took}
	if block != nil && s.Snapshot != nil {
		attributes = append(attributes, "block", block.String())
		if p, ok := s.Pending(); ok && block.IsPending() {
			attributes = append(attributes, "number", p.Header.Number, "index", p.Index)
		} else if n, err := s.Locate(*block); err == nil {
			attributes = append(attributes, "number", n)
		}
	}
	s.api.config.Log.Warn("slow call", attributes...)
}
