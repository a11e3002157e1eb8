// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"errors"
	"net"
	"strconv"

	"github.com/valyala/fasthttp"
)

const contentType = "application/json"

// keptPerConn is how big a request or an answer may be for its buffer to stay
// with the connection. A bigger answer is sent from the exchange, which goes
// back to the pool when it is written.
const keptPerConn = 64 << 10

// serveHTTP answers one HTTP request.
func (v *service) serveHTTP(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	f := readFields(ctx.Request.Header.RawHeaders(), v.asked)
	readable := v.cors.mark(h, f.origin.value)
	stamp := ""
	if r := v.refuse(ctx, &f); r != nil {
		v.writeRefusal(ctx, r)
	} else {
		stamp = v.accepted(ctx, &f, readable)
	}
	if stamp == "" {
		stamp = v.stamp(h)
	}
	if readable && stamp != "" {
		h.Set("Access-Control-Expose-Headers", stamp)
	}
	if hasToken(f.connection.value, "close") || v.draining() {
		ctx.SetConnectionClose()
	}
	ctx.Request.ReleaseBody(keptPerConn)
}

// accepted answers a request that was not refused. Beside calls these are
// health checks and questions about the whole server, which get an empty 200.
// It returns the name of the session's stamp, empty where there is none.
func (v *service) accepted(ctx *fasthttp.RequestCtx, f *fields, readable bool) (stamp string) {
	switch {
	case ctx.IsPost():
		return v.post(ctx, f)
	case ctx.IsOptions() && f.preflightMethod.count > 0:
		ctx.SetStatusCode(fasthttp.StatusNoContent)
		if readable {
			v.cors.preflight(&ctx.Response.Header, f)
		}
	}
	return ""
}

// stamp puts the stamp of now on a response that has none of a session.
func (s *Server) stamp(h *fasthttp.ResponseHeader) (name string) {
	if s.stamper == nil {
		return ""
	}
	name, value := s.stamper.AppendStamp(nil)
	if name != "" {
		h.SetBytesV(name, value)
	}
	return name
}

// post answers a request body.
func (v *service) post(ctx *fasthttp.RequestCtx, f *fields) (stamp string) {
	ticket, r := v.admit(&f.authorization, ctx.Request.Header.RequestURI())
	if r != nil {
		v.writeRefusal(ctx, r)
		return ""
	}
	x := v.exchange()
	x.ticket = ticket
	x.header.take(v.Server, f, &ctx.Request.Header)
	x.answer(v.requests, ctx.Request.Body())

	h := &ctx.Response.Header
	stamp = x.stampName
	if stamp != "" {
		h.SetBytesV(stamp, x.stampValue)
	}
	if x.wait > 0 {
		ctx.SetStatusCode(fasthttp.StatusTooManyRequests)
		h.Set("Retry-After", strconv.Itoa(retrySeconds(x.wait)))
		if len(x.out) == 0 {
			x.out = appendErrorResponse(x.out, nil, errRate) // a 429 has a body
		}
	}
	if len(x.out) == 0 {
		ctx.SetStatusCode(fasthttp.StatusNoContent)
		x.release()
		return stamp
	}
	ctx.SetContentType(contentType)
	v.send(ctx, x, v.encode(h, x, f))
	return stamp
}

// encode returns the answer of x as it goes over the wire. Identity is always
// acceptable, so that a second Accept-Encoding need not be understood.
func (v *service) encode(h *fasthttp.ResponseHeader, x *exchange, f *fields) []byte {
	if len(x.out) <= compressAbove {
		return x.out
	}
	h.Add("Vary", "Accept-Encoding")
	if f.acceptEncoding.count != 1 || !acceptsGzip(f.acceptEncoding.value) {
		return x.out
	}
	zipped, err := v.zipper.append(x.zipped[:0], x.out)
	if err != nil {
		return x.out // the answer itself is whole, only longer
	}
	x.zipped = zipped
	h.Set("Content-Encoding", "gzip")
	return zipped
}

// send hands the answer over and releases x, at once or when it was written.
func (v *service) send(ctx *fasthttp.RequestCtx, x *exchange, answer []byte) {
	if len(answer) <= keptPerConn {
		ctx.SetBody(answer)
		x.release()
		return
	}
	x.sending.Reset(answer)
	ctx.SetBodyStream((*outgoing)(x), len(answer))
}

// outgoing is an exchange while its answer is being written.
type outgoing exchange

func (o *outgoing) Read(p []byte) (int, error) { return o.sending.Read(p) }

// Close gives the exchange back once its answer is written or given up.
func (o *outgoing) Close() error {
	(*exchange)(o).release()
	return nil
}

// headerReceived gives a body its own time. A declared length over the limit
// is refused before the client is told to go on, and to expect 100-continue
// is the same in any case.
func (v *service) headerReceived(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	if expect := h.Peek(fasthttp.HeaderExpect); len(expect) > 0 {
		if h.ContentLength() > v.options.MaxBody {
			h.Del(fasthttp.HeaderExpect)
		} else if equalFold(expect, "100-continue") {
			h.Set(fasthttp.HeaderExpect, "100-continue")
		}
	}
	c := fasthttp.RequestConfig{ReadTimeout: v.options.BodyTimeout}
	// Memory for a declared length is set aside as a whole, before the first
	// byte of the body comes; where there is no room for it, it must not be.
	if length := h.ContentLength(); length > keptPerConn && v.counts.held.Load()+int64(length) > int64(v.options.MaxHeld) {
		c.MaxRequestBodySize = 1
	}
	return c
}

// unreadable answers a request that could not be read.
func (v *service) unreadable(ctx *fasthttp.RequestCtx, err error) {
	ctx.Request.ReleaseBody(keptPerConn)
	r := refuseNonsense
	var headerTooBig *fasthttp.ErrSmallBuffer
	var network net.Error
	switch {
	case errors.Is(err, errHeld):
		r = refuseMemory
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		r = refuseSize
		if length := ctx.Request.Header.ContentLength(); 0 < length && length <= v.options.MaxBody {
			r = refuseMemory // as headerReceived decided
			v.counts.refusedMemory.Add(1)
		}
	case errors.As(err, &headerTooBig):
		r = refuseHeaderSize
	case errors.As(err, &network) && network.Timeout():
		r = refuseSlowness
	}
	v.writeRefusal(ctx, r)
	v.stamp(&ctx.Response.Header)
}

// exchange takes a fresh exchange from the pool.
func (s *Server) exchange() *exchange {
	if x, ok := s.exchanges.Get().(*exchange); ok {
		return x
	}
	return &exchange{server: s}
}
