// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"
)

const (
	// keptPerSocket is how big a buffer may be that stays with a WebSocket
	// connection, of which many are idle for long.
	keptPerSocket = 4 << 10

	// goodbyeTime is how long a client may take to say goodbye in return.
	goodbyeTime = time.Second

	maxReason = 123 // bytes of text in a close frame
)

// A socket is one WebSocket connection. One goroutine reads requests and
// answers them, one after the other; one sees to it that the client lives; and
// each subscription has one that pushes.
type socket struct {
	service *service
	wire    *wire
	ws      *websocket.Conn // nil before the handshake
	ticket  Ticket          // nil where everybody may ask
	header  askedFields     // of the handshake

	life context.Context
	end  context.CancelFunc

	busy    atomic.Bool // part of a request has been read and it is not answered yet
	closing atomic.Bool // a goodbye is being said

	// Used by the reading goroutine only.
	pumps map[string]*pump // by id
	fresh []*pump          // not started yet
}

func newSocket(v *service, c net.Conn) *socket {
	life, end := context.WithCancel(v.requests)
	return &socket{
		service: v,
		wire:    &wire{Conn: c, writeTimeout: v.options.WriteTimeout},
		life:    life,
		end:     end,
		pumps:   make(map[string]*pump),
	}
}

// serve shakes hands and answers until the connection ends.
func (k *socket) serve() {
	defer k.end()
	defer k.abort()
	ws, ok := k.handshake()
	if !ok {
		return
	}
	k.ws = ws
	k.service.counts.websocket.Add(1)
	defer k.service.counts.websocket.Add(-1)

	var alive sync.WaitGroup
	alive.Go(k.keepAlive)
	err := k.talk()
	k.end()
	k.part(err)
	for id := range k.pumps {
		k.unsubscribe(id)
	}
	// Closed by now, or what is left is to be cut off.
	_ = ws.CloseNow()
	alive.Wait()
}

// wake ends the wait for a next request.
func (k *socket) wake() {
	if !k.busy.Load() {
		// A connection that cannot take a deadline is closed and needs no waking.
		_ = k.wire.SetReadDeadline(time.Unix(1, 0))
	}
}

// abort ends the connection at once.
func (k *socket) abort() {
	// The connection is given up; there is nobody to tell.
	_ = k.wire.Conn.Close()
}

var (
	errDraining  = errors.New("going away")
	errWithdrawn = errors.New("API key withdrawn")
	errLate      = errors.New("message took too long to arrive")
)

// talk answers requests until something ends it.
func (k *socket) talk() error {
	var body []byte
	for {
		k.busy.Store(false)
		// Set before draining is looked at, so that wake has the last word. A
		// connection that takes no deadline fails the read.
		_ = k.wire.SetReadDeadline(time.Time{})
		if k.service.draining() {
			return errDraining
		}
		_, message, err := k.ws.Reader(context.Background())
		if err != nil {
			if k.service.draining() {
				return errDraining
			}
			return err
		}
		k.busy.Store(true)
		if body, err = k.answer(message, body[:0]); err != nil {
			return err
		}
	}
}

// answer reads one request body into a buffer and answers it. It returns the
// buffer where it is worth keeping.
func (k *socket) answer(message io.Reader, body []byte) ([]byte, error) {
	var hold hold
	defer hold.release(k.service.Server)
	_ = k.wire.SetReadDeadline(time.Now().Add(k.service.options.BodyTimeout)) // as above
	body, err := k.readBody(message, body, &hold)
	switch {
	case isTimeout(err):
		return nil, errLate
	case err != nil:
		return nil, err
	case k.ticket != nil && k.ticket.Withdrawn():
		return nil, errWithdrawn
	}

	x := k.service.exchange()
	defer x.release()
	x.header, x.ticket, x.socket = k.header, k.ticket, k
	x.answer(k.life, body)
	if len(x.out) > 0 {
		if err := k.write(x.out); err != nil {
			return nil, err
		}
	}
	for _, p := range k.fresh {
		p.start()
	}
	k.fresh = k.fresh[:0]
	if cap(body) > keptPerSocket {
		body = nil
	}
	return body, nil
}

// readBody reads a message, with a buffer that grows as its bytes arrive: a
// length that is only announced costs nothing.
func (k *socket) readBody(message io.Reader, body []byte, h *hold) ([]byte, error) {
	for {
		if len(body) == cap(body) {
			body = slices.Grow(body, max(512, len(body)))
			if !h.extend(k.service.Server, cap(body)) {
				return nil, errHeld
			}
		}
		n, err := message.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err == io.EOF {
			return body, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// write sends one message. A failure ends the connection, since part of the
// message may have been sent. It is safe for concurrent use.
func (k *socket) write(p []byte) error {
	// The wire bounds the time; a context of its own would cost garbage.
	err := k.ws.Write(context.Background(), websocket.MessageText, p)
	if err != nil {
		if isTimeout(err) && !k.closing.Load() {
			k.service.counts.slowConsumers.Add(1)
		}
		k.abort()
	}
	return err
}

// keepAlive asks the client for a sign of life now and then, and cuts it off
// when there is none: without it a client that vanished would hold its place
// and its subscriptions until a message to it fails.
func (k *socket) keepAlive() {
	ticker := time.NewTicker(k.service.options.PingInterval)
	defer ticker.Stop()
	for {
		select {
		case <-k.life.Done():
			return
		case <-ticker.C:
		}
		if k.ticket != nil && k.ticket.Withdrawn() {
			k.fail(errWithdrawn)
			return
		}
		before := k.wire.reads.Load()
		limit, cancel := context.WithTimeout(k.life, k.service.options.PingInterval)
		err := k.ws.Ping(limit)
		cancel()
		// While a request is being answered nobody reads, so that a pong is
		// not seen; while something long is being written no ping can be.
		// Both have bounds of their own.
		silent := k.wire.reads.Load() == before && !k.busy.Load() && k.wire.writes.Load() == 0
		if err != nil && silent {
			k.abort()
			return
		}
	}
}

// subscribe opens what params ask for and returns its id.
func (k *socket) subscribe(params Values) (id string, _ *Error) {
	o, c := &k.service.options, &k.service.counts
	if len(k.pumps) >= o.MaxSubscriptions || !takeWithin(&c.subscriptions, 1, int64(o.MaxAllSubscriptions)) {
		return "", errSubscriptions
	}
	id = newID()
	p := &pump{socket: k, head: k.service.pushing.head + id + `","result":`}
	p.life, p.end = context.WithCancel(k.life)
	opened := false
	defer func() {
		if !opened { // also where the Handler panics
			p.end()
			c.subscriptions.Add(-1)
		}
	}()
	subscription, err := k.service.pushing.subscriber.Subscribe(p.life, params)
	if err != nil {
		return "", err
	}
	p.subscription, opened = subscription, true
	k.pumps[id] = p
	k.fresh = append(k.fresh, p)
	return id, nil
}

// unsubscribe ends a subscription and reports whether there was one. When it
// returns nothing more is pushed.
func (k *socket) unsubscribe(id string) bool {
	p, ok := k.pumps[id]
	if !ok {
		return false
	}
	delete(k.pumps, id)
	k.fresh = slices.DeleteFunc(k.fresh, func(other *pump) bool { return other == p })
	p.stop()
	k.service.counts.subscriptions.Add(-1)
	return true
}

// part ends the connection for the reason why talk ended.
func (k *socket) part(err error) {
	switch {
	case k.closing.Load():
		// Somebody else is saying goodbye.
	case errors.Is(err, errDraining), errors.Is(err, errWithdrawn), errors.Is(err, errLate), errors.Is(err, errHeld):
		k.fail(err)
	case websocket.CloseStatus(err) >= 0:
		// The client said goodbye and was answered.
	default:
		// The library has said what was wrong with the frame, if it was that.
		lingerOn(k.wire.Conn)
	}
}

// fail says goodbye with a reason and ends the connection. It waits for the
// client's goodbye, but not for long. Of several reasons the first is said.
func (k *socket) fail(err error) {
	if k.closing.Swap(true) {
		return
	}
	code, reason := websocket.StatusInternalError, err.Error()
	switch {
	case errors.Is(err, errDraining), k.service.draining():
		code, reason = websocket.StatusGoingAway, errDraining.Error()
	case errors.Is(err, ErrSlow):
		code = websocket.StatusPolicyViolation
		k.service.counts.slowConsumers.Add(1)
	case errors.Is(err, errWithdrawn), errors.Is(err, errLate):
		code = websocket.StatusPolicyViolation
	case errors.Is(err, errHeld):
		code, reason = websocket.StatusTryAgainLater, errMemory.Message
	}
	// What is being written has this long to end, too.
	if k.wire.SetDeadline(time.Now().Add(goodbyeTime)) == nil {
		// The client is gone, then.
		_ = k.ws.Close(code, clipReason(reason))
	}
	k.abort()
}

// clipReason makes text fit a close frame.
func clipReason(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if len(text) <= maxReason {
		return text
	}
	end := maxReason
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

func isTimeout(err error) bool {
	var network net.Error
	return errors.As(err, &network) && network.Timeout()
}
