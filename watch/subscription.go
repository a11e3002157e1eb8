// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"sync"
	"sync/atomic"
)

// A Subscription is a queue of Messages that one Topic fills. It ends when it is
// closed, when it is full and when the Watcher stops.
type Subscription struct {
	options *Options
	total   *atomic.Int64 // bytes waiting in all Subscriptions
	leave   chan<- struct{}

	// wake holds at most one signal, that there is something to see: a second
	// one would say the same and is dropped.
	wake chan struct{}

	mu    sync.Mutex // guards what follows
	queue []Message
	bytes int
	ended error // nil while it lasts
}

// Next appends the next Message to dst, waiting for it within ctx. After the
// Subscription has ended it returns what still waits, and then an Error, or the
// error of a read that failed. One that was too slow has nothing waiting any
// more. Next is called by one goroutine at a time.
func (s *Subscription) Next(ctx context.Context, dst []byte) ([]byte, error) {
	for {
		m, ok, err := s.pop()
		if ok {
			return append(append(dst, m.Text...), m.Tail...), nil
		}
		if err != nil {
			return dst, err
		}
		select {
		case <-ctx.Done():
			return dst, ctx.Err()
		case <-s.wake:
		}
	}
}

// Close ends the Subscription and drops what waits. It may be called more than
// once, and by any goroutine.
func (s *Subscription) Close() {
	s.drop(ErrClosed)
	select {
	case s.leave <- struct{}{}:
	default: // Run has a signal to look for those that left already
	}
}

func (s *Subscription) pop() (m Message, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return Message{}, false, s.ended
	}
	m, s.queue[0] = s.queue[0], Message{}
	if s.queue = s.queue[1:]; len(s.queue) == 0 {
		s.queue = nil
	}
	s.account(-m.size())
	return m, true, nil
}

// account notes that more bytes wait. The caller holds mu.
func (s *Subscription) account(bytes int) {
	s.bytes += bytes
	s.total.Add(int64(bytes))
}

// push adds the Messages of one step, or ends the Subscription where they do not
// fit.
func (s *Subscription) push(messages []Message) {
	bytes := 0
	for _, m := range messages {
		bytes += m.size()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended != nil || len(messages) == 0:
		return
	case len(messages) > s.options.MaxMessages || bytes > s.options.MaxBytes:
		s.dropLocked(ErrTooMuch)
	case len(s.queue)+len(messages) > s.options.MaxMessages || s.bytes+bytes > s.options.MaxBytes:
		s.dropLocked(ErrSlow)
	default:
		s.queue = append(s.queue, messages...)
		s.account(bytes)
	}
	s.signal()
}

// end lets what waits be read and no more come.
func (s *Subscription) end(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		s.ended = why
		s.signal()
	}
}

// drop ends the Subscription and frees what waits.
func (s *Subscription) drop(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropLocked(why)
	s.signal()
}

func (s *Subscription) dropLocked(why error) {
	if s.ended == nil {
		s.ended = why
	}
	s.account(-s.bytes)
	s.queue = nil
}

func (s *Subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default: // there is a signal that was not seen yet
	}
}

// waiting returns how many bytes wait.
func (s *Subscription) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// failed returns why no more will come, nil while it may.
func (s *Subscription) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}
