// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"github.com/coder/websocket"
)

var (
	errDisconnected = errors.New("disconnected")
	errNotSent      = errors.New("not sent")
)

// A socketTransport carries all calls and subscriptions over one WebSocket,
// told apart by their ids. It connects when it is first needed, and again when
// the connection was lost.
type socketTransport struct {
	url    *url.URL
	client *http.Client
	limit  int64

	mu      sync.Mutex
	current *socket
	dialing chan struct{} // closed when the dial in progress has ended; nil where there is none
	closed  bool
}

// A socket is one connection, with one goroutine that reads it.
type socket struct {
	conn *websocket.Conn
	done chan struct{} // closed when the reader has ended

	mu      sync.Mutex
	waiting map[uint64]*waiter // by id
	stale   int                // refusals without an id that are on their way to who was given another
	heads   chan<- json.RawMessage
	err     error // why it ended; set before done is closed
}

// A waiter is one exchange, which may have several ids.
type waiter struct {
	answer chan []byte // of capacity 1: filled once
	batch  bool
}

// exchange sends once more where the connection turned out to be gone: what could
// not be sent was not heard.
func (t *socketTransport) exchange(ctx context.Context, body []byte, first uint64, n int) ([]byte, error) {
	answer, err := t.exchangeOnce(ctx, body, first, n)
	if errors.Is(err, errNotSent) && ctx.Err() == nil {
		return t.exchangeOnce(ctx, body, first, n)
	}
	return answer, err
}

func (t *socketTransport) exchangeOnce(ctx context.Context, body []byte, first uint64, n int) ([]byte, error) {
	s, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	answer, err := s.exchange(ctx, body, first, n)
	// A connection on which an answer is overdue may be dead without saying so.
	if errors.Is(err, context.DeadlineExceeded) {
		s.drop()
	}
	return answer, err
}

// connect returns the connection, which several callers may be waiting for.
func (t *socketTransport) connect(ctx context.Context) (*socket, error) {
	for {
		t.mu.Lock()
		s, dialing := t.current, t.dialing
		switch {
		case t.closed:
			t.mu.Unlock()
			return nil, errDisconnected
		case s != nil && s.alive():
			t.mu.Unlock()
			return s, nil
		case dialing == nil:
			dialing = make(chan struct{})
			t.dialing = dialing
			t.mu.Unlock()
			return t.dial(ctx, dialing)
		}
		t.mu.Unlock()
		select {
		case <-dialing:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (t *socketTransport) dial(ctx context.Context, dialing chan struct{}) (*socket, error) {
	conn, _, err := websocket.Dial(ctx, t.url.String(), &websocket.DialOptions{HTTPClient: t.client})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dialing = nil
	close(dialing)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", withoutURL(err))
	}
	if t.closed {
		_ = conn.CloseNow() // nobody wants it any more
		return nil, errDisconnected
	}
	conn.SetReadLimit(t.limit)
	t.current = &socket{conn: conn, done: make(chan struct{}), waiting: make(map[uint64]*waiter)}
	go t.current.read()
	return t.current, nil
}

func (t *socketTransport) close() {
	t.mu.Lock()
	t.closed = true
	s := t.current
	t.mu.Unlock()
	if s != nil {
		s.drop()
		<-s.done
	}
	t.client.CloseIdleConnections()
}

func (s *socket) alive() bool {
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// drop ends the connection; all that wait on it fail.
func (s *socket) drop() { _ = s.conn.CloseNow() } // it is going either way

func (s *socket) exchange(ctx context.Context, body []byte, first uint64, n int) ([]byte, error) {
	w := &waiter{answer: make(chan []byte, 1), batch: n > 1}
	s.mu.Lock()
	for i := range uint64(n) {
		s.waiting[first+i] = w
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i := range uint64(n) {
			delete(s.waiting, first+i)
		}
	}()
	if err := s.conn.Write(ctx, websocket.MessageText, body); err != nil {
		s.drop()
		<-s.done // so that the next call finds it gone
		return nil, fmt.Errorf("%w: %w", errNotSent, err)
	}
	select {
	case answer := <-w.answer:
		return answer, nil
	case <-s.done:
		return nil, fmt.Errorf("%w: %w", errDisconnected, s.err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// read gives each message to who waits for it, until the connection ends. It
// reads without a deadline: who waits has one.
func (s *socket) read() {
	var err error
	for err == nil {
		var data []byte
		if _, data, err = s.conn.Read(context.Background()); err == nil {
			err = s.dispatch(data)
		}
	}
	s.drop()
	s.err = err
	close(s.done)
}

func (s *socket) dispatch(data []byte) error {
	var first wireAnswer
	if body := bytes.TrimSpace(data); len(body) > 0 && body[0] == '[' {
		var many []wireAnswer
		if err := json.Unmarshal(body, &many); err != nil {
			return fmt.Errorf("%w: %w", errMalformed, err)
		}
		if len(many) == 0 {
			return fmt.Errorf("%w: an empty batch", errMalformed)
		}
		first = many[0]
	} else if err := json.Unmarshal(body, &first); err != nil {
		return fmt.Errorf("%w: %w", errMalformed, err)
	}
	if first.Method != "" {
		s.notify(&first)
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok := first.number()
	if w := s.waiting[id]; ok && w != nil {
		w.give(data)
		return nil
	}
	if ok {
		return nil // whoever asked has gone
	}
	// An error that names no call is about one that could not be read as one:
	// a batch, where one is waiting.
	return s.refuse(data)
}

// refuse gives an answer without an id to all batches that wait: which one it is
// for cannot be told, and those that are refused one by one later are not there any
// more. Where no batch waits, and none has left early, it ends the connection.
func (s *socket) refuse(data []byte) error {
	if s.stale > 0 {
		s.stale--
		return nil
	}
	given := make(map[*waiter]bool)
	for _, w := range s.waiting {
		if w.batch && !given[w] {
			w.give(data)
			given[w] = true
		}
	}
	if len(given) == 0 {
		return fmt.Errorf("%w: an answer without an id", errMalformed)
	}
	s.stale += len(given) - 1
	return nil
}

// give hands over an answer. A second one, to the same ids, is dropped.
func (w *waiter) give(data []byte) {
	select {
	case w.answer <- data:
	default:
	}
}

// notify hands a new head to the subscriber. One that has not taken the last
// one yet sees the newer in its place.
func (s *socket) notify(w *wireAnswer) {
	var params struct {
		Result json.RawMessage `json:"result"`
	}
	if w.Method != "eth_subscription" || json.Unmarshal(w.Params, &params) != nil {
		return // of no subscription of ours
	}
	s.mu.Lock()
	heads := s.heads
	s.mu.Unlock()
	if heads == nil {
		return
	}
	select {
	case heads <- params.Result:
	default: // the subscriber asks for the latest head when it comes to it
	}
}

// subscribe delivers new heads to a channel, which should have room for one:
// what finds it full is dropped. There is one subscription for each connection.
// The channel that is returned is closed when the connection has ended.
func (t *socketTransport) subscribe(ctx context.Context, id uint64, heads chan<- json.RawMessage) (done <-chan struct{}, end func(), err error) {
	s, err := t.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	s.heads = heads
	s.mu.Unlock()
	body, err := encodeRequests([]request{ask("eth_subscribe", "newHeads")}, id)
	if err != nil {
		return nil, nil, err
	}
	data, err := s.exchange(ctx, body, id, 1)
	if err != nil {
		return nil, nil, err
	}
	answers, err := decodeAnswers(data, id, 1)
	if err != nil {
		return nil, nil, err
	}
	if answers[0].err != nil {
		return nil, nil, answers[0].err
	}
	return s.done, s.drop, nil
}
