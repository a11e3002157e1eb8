// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"bytes"
	"context"
	"fmt"

	"github.com/valyala/fasthttp"
)

var Valid = valid

const MaxDepth = maxDepth

// Answer frames one body without a transport.
func Answer(h Handler, o Options, body string) string {
	return AnswerUntil(context.Background(), h, o, body)
}

// AnswerUntil is Answer for a caller who may go away.
func AnswerUntil(ctx context.Context, h Handler, o Options, body string) string {
	x := NewServer(h, o).exchange()
	x.answer(ctx, []byte(body))
	return string(x.out)
}

// A Reader reads bodies with either parser, reusing its memory.
type Reader struct{ x *exchange }

func NewReader() Reader { return Reader{NewServer(nil, Options{}).exchange()} }

// Fast reports whether the fast parser takes body.
func (r Reader) Fast(body []byte) bool {
	r.x.forget()
	_, ok := r.x.readFast(body)
	return ok
}

// Careful reads body with the careful parser.
func (r Reader) Careful(body []byte) {
	r.x.forget()
	r.x.readCarefully(body)
}

// Compare returns how the two parsers differ on body, empty where they agree
// or the fast one declines.
func Compare(body []byte, maxBatch int) string {
	s := NewServer(nil, Options{MaxBatch: maxBatch})
	fast, careful := s.exchange(), s.exchange()
	got, ok := fast.readFast(body)
	if !ok {
		return ""
	}
	if want := careful.readCarefully(body); got != want || len(fast.messages) != len(careful.messages) {
		return fmt.Sprintf("form %d with %d messages, want %d with %d", got, len(fast.messages), want, len(careful.messages))
	}
	for i, m := range fast.messages {
		want := careful.messages[i]
		same := bytes.Equal(m.id, want.id) && (m.id == nil) == (want.id == nil) &&
			bytes.Equal(m.method, want.method) &&
			bytes.Equal(m.params, want.params) && (m.params == nil) == (want.params == nil) &&
			m.fault == want.fault
		if !same {
			return fmt.Sprintf("message %d is %+v, want %+v", i, m, want)
		}
	}
	return ""
}

// HTTPHandler returns the part of a Server that answers a parsed request.
func HTTPHandler(h Handler, o Options) fasthttp.RequestHandler {
	return newService(NewServer(h, o), context.Background(), nil).serveHTTP
}

var AcceptsGzip = acceptsGzip

func HostAllowed(names []string, host string) bool { return newHosts(names).allow([]byte(host)) }

// AppendString turns text into a JSON string.
var AppendString = appendString

// WithDefaults returns o as a Server has it.
func WithDefaults(o Options) Options { return o.withDefaults() }
