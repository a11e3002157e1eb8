// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"bytes"
	"context"
	"runtime/debug"
	"time"
)

// A form is what a request body turned out to be.
type form int

const (
	malformed form = iota // not one JSON value
	single
	batch
	emptyBatch
	hugeBatch // over the limit: nothing of it is executed
)

// An exchange is one request body and its answer, whatever transport carries
// them. It is used by one goroutine and reused for the next request.
type exchange struct {
	server *Server

	header askedFields // of the request
	ticket Ticket      // of its key; nil where everybody may ask
	socket *socket     // what it came over; nil where nothing can be pushed

	messages []message
	firstID  []byte        // of the first call in a huge batch; nil where none has one
	full     bool          // the response limit was reached
	refused  *Error        // what every call is answered with, nil where they are executed
	wait     time.Duration // until the key may ask again, where that is why
	out      []byte        // the answer; empty where there is none to give

	stampName  string // header field of the session; empty for none
	stampValue []byte

	zipped  []byte // for the transport: out, compressed
	sending bytes.Reader
	hold    hold // for out
}

// keptBytes and keptMessages are how much an exchange keeps for the next
// request. What one big request needed must not stay allocated for ever.
const (
	keptBytes    = 1 << 20
	keptMessages = 1024
)

// answer reads body and leaves the whole response in x.out. Nothing is left
// where body holds notifications only. The body may be reused afterwards.
func (x *exchange) answer(ctx context.Context, body []byte) {
	form := x.read(body)
	x.charge()
	x.frame(ctx, form)
}

// charge counts every entry of the body against the rate of its key.
func (x *exchange) charge() {
	if x.ticket == nil {
		return
	}
	wait, ok := x.ticket.Take(max(1, len(x.messages)))
	if !ok {
		x.server.counts.refusedRate.Add(1)
		x.refused, x.wait = errRate, max(wait, 1)
	}
}

// frame appends the whole response.
func (x *exchange) frame(ctx context.Context, form form) {
	switch form {
	case malformed:
		x.out = appendErrorResponse(x.out, nil, errParse)
	case emptyBatch:
		x.out = appendErrorResponse(x.out, nil, errEmptyBatch)
	case hugeBatch:
		x.out = append(x.out, '[')
		x.out = appendErrorResponse(x.out, x.firstID, errBatchTooLarge)
		x.out = append(x.out, ']')
	case single:
		x.run(ctx, nil)
	case batch:
		x.out = append(x.out, '[')
		x.run(ctx, []byte{','})
		if len(x.out) == 1 {
			x.out = x.out[:0]
			return
		}
		x.out[len(x.out)-1] = ']' // in place of the last comma
	}
}

// read finds the messages in body.
func (x *exchange) read(body []byte) form {
	if form, ok := x.readFast(body); ok {
		return form
	}
	x.forget()
	return x.readCarefully(body)
}

func (x *exchange) readCarefully(body []byte) form {
	if !valid(body) {
		return malformed
	}
	root := Value(skipSpace(body))
	elements, isBatch := root.Elements()
	if !isBatch {
		*x.add() = readMessage(root)
		return single
	}
	count := 0
	for {
		element, ok := elements.Next()
		if !ok {
			break
		}
		m := readMessage(element)
		if x.firstID == nil && m.isCall() {
			x.firstID = m.id
		}
		if count++; count <= x.server.options.MaxBatch {
			*x.add() = m
		} else if x.firstID != nil {
			break
		}
	}
	switch {
	case count == 0:
		return emptyBatch
	case count > x.server.options.MaxBatch:
		return hugeBatch
	}
	return batch
}

// add returns a new, zero message at the end.
func (x *exchange) add() *message {
	x.messages = append(x.messages, message{})
	return &x.messages[len(x.messages)-1]
}

// run answers the messages in one session, with separator after each answer.
func (x *exchange) run(ctx context.Context, separator []byte) {
	var session Session
	if x.refused == nil && x.hasCall() {
		s := x.server
		if takeWithin(&s.counts.inFlight, 1, int64(s.options.MaxInFlight)) {
			defer s.counts.inFlight.Add(-1)
			session = x.begin(ctx)
			defer x.end(session)
		} else {
			s.counts.refusedInFlight.Add(1)
			x.refused = errInFlight
		}
	}
	for i := range x.messages {
		m := &x.messages[i]
		if m.isNotification() {
			continue
		}
		// A batch that nobody waits for any more is not worth the rest of its
		// calls, and must not keep a server from stopping.
		if separator != nil && x.refused == nil && ctx.Err() != nil {
			x.refused = errInternal
		}
		x.respond(ctx, session, m)
		x.out = append(x.out, separator...)
	}
}

func (x *exchange) hasCall() bool {
	for i := range x.messages {
		if x.messages[i].isCall() {
			return true
		}
	}
	return false
}

// respond appends the response to one message.
func (x *exchange) respond(ctx context.Context, session Session, m *message) {
	start := len(x.out)
	err := m.fault
	if err == nil {
		err = x.refused
	}
	if err == nil && x.full {
		err = errTooLarge
	}
	if err == nil {
		x.out = appendResponseHead(x.out, m.id)
		x.out = append(x.out, `"result":`...)
		err = x.call(ctx, session, m)
	}
	if err == nil {
		x.out = append(x.out, '}')
		if x.full = len(x.out) > x.server.options.MaxResponse; x.full {
			err = errTooLarge
		} else if !x.hold.extend(x.server, x.size()) {
			// The rest is not tried, and what was answered stays.
			err, x.refused = errMemory, errMemory
			x.out = bytes.Clone(x.out[:start])
		}
	}
	if err != nil {
		x.out = appendErrorResponse(x.out[:start], m.id, err)
	}
}

// size is how much memory the answer takes that this exchange would not have
// in any case: what is kept for the next one is nobody's in particular.
func (x *exchange) size() int {
	if cap(x.out) <= keptBytes {
		return len(x.out)
	}
	return cap(x.out)
}

// call appends the bare result of m. A panic costs the caller this one answer.
func (x *exchange) call(ctx context.Context, session Session, m *message) (err *Error) {
	defer func() {
		if p := recover(); p != nil {
			x.panicked(p)
			err = errInternal
		}
	}()
	args, ok := m.arguments()
	push := x.server.pushing.asks(m.method)
	switch {
	case !ok && !push && !x.server.handler.Has(m.method):
		return MethodNotFound(m.method)
	case !ok:
		return errNonArray
	}
	var out []byte
	if push {
		out, err = x.push(m.method, args)
	} else {
		out, err = session.Call(ctx, x.out, m.method, args)
	}
	if err != nil {
		return err
	}
	if len(out) <= len(x.out) {
		return errInternal // a result is never nothing
	}
	x.out = out
	return nil
}

// begin opens the session and keeps its stamp, which must outlive it.
func (x *exchange) begin(ctx context.Context) (s Session) {
	defer func() {
		if p := recover(); p != nil {
			x.panicked(p)
			s = broken{}
		}
	}()
	s = x.server.handler.Begin(ctx, &x.header)
	if stamped, ok := s.(Stamped); ok {
		name, value := stamped.Stamp()
		x.stampName, x.stampValue = name, append(x.stampValue[:0], value...)
	}
	return s
}

func (x *exchange) end(s Session) {
	defer func() {
		if p := recover(); p != nil {
			x.panicked(p)
		}
	}()
	s.End()
}

func (x *exchange) panicked(value any) { x.server.panicked(value) }

func (s *Server) panicked(value any) {
	if s.options.OnPanic != nil {
		s.options.OnPanic(value, debug.Stack())
	}
}

// broken answers in place of a session that could not be opened.
type broken struct{}

func (broken) Call(context.Context, []byte, []byte, Values) ([]byte, *Error) {
	return nil, errInternal
}

func (broken) End() {}

// forget drops the messages, and with them what they hold of the body.
func (x *exchange) forget() {
	clear(x.messages)
	x.messages = x.messages[:0]
	x.firstID = nil
}

// release makes x ready for the next request and gives it back. The answer
// must have been sent.
func (x *exchange) release() {
	x.forget()
	if cap(x.messages) > keptMessages {
		x.messages = nil
	}
	x.out = reuse(x.out)
	x.zipped = reuse(x.zipped)
	x.full, x.refused, x.wait = false, nil, 0
	x.header.forget()
	x.ticket, x.socket = nil, nil
	x.hold.release(x.server)
	x.stampName, x.stampValue = "", x.stampValue[:0]
	x.sending.Reset(nil)
	x.server.exchanges.Put(x)
}

func reuse(b []byte) []byte {
	if cap(b) > keptBytes {
		return nil
	}
	return b[:0]
}
