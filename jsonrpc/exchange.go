// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"bytes"
	"context"
	"runtime/debug"
	"sync"
)

// limits bound what one request body may ask for.
type limits struct {
	batch    int // entries in a batch
	response int // bytes of answer
}

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
	handler Handler
	limits  limits
	onPanic func(value any, stack []byte)

	messages []message
	firstID  []byte // of the first call in a huge batch; nil where none has one
	full     bool   // the response limit was reached
	out      []byte // the answer; empty where there is none to give

	stampName  string // header field of the session; empty for none
	stampValue []byte

	zipped  []byte // for the transport: out, compressed
	sending bytes.Reader
	pool    *sync.Pool
}

// keptBytes and keptMessages are how much an exchange keeps for the next
// request. What one big request needed must not stay allocated for ever.
const (
	keptBytes    = 1 << 20
	keptMessages = 1024
)

// answer reads body and leaves the whole response in x.out. Nothing is left
// where body holds notifications only. The body may be reused afterwards.
func (x *exchange) answer(ctx context.Context, header Header, body []byte) {
	switch x.read(body) {
	case malformed:
		x.out = appendErrorResponse(x.out, nil, errParse)
	case emptyBatch:
		x.out = appendErrorResponse(x.out, nil, errEmptyBatch)
	case hugeBatch:
		x.out = append(x.out, '[')
		x.out = appendErrorResponse(x.out, x.firstID, errBatchTooLarge)
		x.out = append(x.out, ']')
	case single:
		x.run(ctx, header, nil)
	case batch:
		x.out = append(x.out, '[')
		x.run(ctx, header, []byte{','})
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
		if count++; count <= x.limits.batch {
			*x.add() = m
		} else if x.firstID != nil {
			break
		}
	}
	switch {
	case count == 0:
		return emptyBatch
	case count > x.limits.batch:
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
func (x *exchange) run(ctx context.Context, header Header, separator []byte) {
	var session Session
	if x.hasCall() {
		session = x.begin(ctx, header)
		defer x.end(session)
	}
	for i := range x.messages {
		m := &x.messages[i]
		if m.isNotification() {
			continue
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
		if x.full = len(x.out) > x.limits.response; x.full {
			err = errTooLarge
		}
	}
	if err != nil {
		x.out = appendErrorResponse(x.out[:start], m.id, err)
	}
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
	switch {
	case !ok && !x.handler.Has(m.method):
		return MethodNotFound(m.method)
	case !ok:
		return errNonArray
	}
	out, err := session.Call(ctx, x.out, m.method, args)
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
func (x *exchange) begin(ctx context.Context, header Header) (s Session) {
	defer func() {
		if p := recover(); p != nil {
			x.panicked(p)
			s = broken{}
		}
	}()
	s = x.handler.Begin(ctx, header)
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

func (x *exchange) panicked(value any) {
	if x.onPanic != nil {
		x.onPanic(value, debug.Stack())
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
	x.full = false
	x.stampName, x.stampValue = "", x.stampValue[:0]
	x.sending.Reset(nil)
	x.pool.Put(x)
}

func reuse(b []byte) []byte {
	if cap(b) > keptBytes {
		return nil
	}
	return b[:0]
}
