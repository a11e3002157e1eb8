// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// A refusal is an answer from the transport: the request never became a call.
type refusal struct {
	status int
	reason string
	close  bool // what follows on the connection, if anything, is not a request
	later  bool // the same request may be taken later
}

// body is what a refused client reads.
func (r *refusal) body() []byte {
	code := CodeInvalidRequest
	if r.later {
		code = CodeLimitExceeded
	}
	return appendErrorResponse(nil, nil, &Error{Code: code, Message: r.reason})
}

var (
	refuseVersion     = &refusal{fasthttp.StatusHTTPVersionNotSupported, "only HTTP/1.1 and HTTP/1.0 are served", true, false}
	refuseFraming     = &refusal{fasthttp.StatusBadRequest, "ambiguous length of the request body", true, false}
	refuseFolding     = &refusal{fasthttp.StatusBadRequest, "folded header line", true, false}
	refuseExpectation = &refusal{fasthttp.StatusExpectationFailed, "only 100-continue can be expected", false, false}
	refuseHost        = &refusal{fasthttp.StatusForbidden, "host not allowed", false, false}
	refusePath        = &refusal{fasthttp.StatusNotFound, "not found: requests go to /", false, false}
	refuseWebSocket   = &refusal{fasthttp.StatusBadRequest, "WebSocket is not served on this port", false, false}
	refuseMethod      = &refusal{fasthttp.StatusMethodNotAllowed, "method not allowed: use POST", false, false}
	refuseType        = &refusal{fasthttp.StatusUnsupportedMediaType, "content type must be application/json", false, false}
	refuseEncoding    = &refusal{fasthttp.StatusUnsupportedMediaType, "request bodies must not be encoded", false, false}
	refuseSize        = &refusal{fasthttp.StatusRequestEntityTooLarge, "request body too large", true, false}
	refuseHeaderSize  = &refusal{fasthttp.StatusRequestHeaderFieldsTooLarge, "request header too large", true, false}
	refuseSlowness    = &refusal{fasthttp.StatusRequestTimeout, "request took too long to arrive", true, false}
	refuseUpgrade     = &refusal{fasthttp.StatusUpgradeRequired, "this port speaks WebSocket: ask for an upgrade", true, false}
	refuseOrigin      = &refusal{fasthttp.StatusForbidden, "origin not allowed", true, false}
	refuseNoKey       = &refusal{fasthttp.StatusUnauthorized, "API key required", false, false}
	refuseKey         = &refusal{fasthttp.StatusUnauthorized, "unknown API key", false, false}
	refuseMemory      = &refusal{fasthttp.StatusServiceUnavailable, errMemory.Message, true, true}
	refuseCrowd       = &refusal{fasthttp.StatusServiceUnavailable, "too many connections", true, false}
	refuseNonsense    = &refusal{fasthttp.StatusBadRequest, "not a valid HTTP request", true, false}
)

// refuse decides whether a request is one that this transport carries, nil if
// so.
func (v *service) refuse(ctx *fasthttp.RequestCtx, f *fields) *refusal {
	h := &ctx.Request.Header
	switch version := string(h.Protocol()); {
	case version != "HTTP/1.1" && version != "HTTP/1.0":
		return refuseVersion
	case f.folded:
		return refuseFolding
	case f.transferEncoding.count > 0 && (f.contentLength.count > 0 || !equalFold(f.transferEncoding.value, "chunked")):
		return refuseFraming
	case f.expect.count > 0 && !equalFold(f.expect.value, "100-continue"):
		return refuseExpectation
	case !v.hosts.allow(h.Host()):
		return refuseHost
	}
	target := h.RequestURI()
	wholeServer := string(target) == "*"
	hasQuery := false
	if string(target) != "/" && !wholeServer {
		uri := ctx.URI()
		hasQuery = bytes.IndexByte(target, '?') >= 0
		switch path := uri.PathOriginal(); {
		case target[0] != '/' && !v.hosts.allow(uri.Host()):
			return refuseHost
		case string(path) != "/" && len(path) > 0 && (v.options.Gate == nil || target[0] != '/' || !isKeyPath(path)):
			return refusePath
		}
	}
	if hasToken(f.upgrade.value, "websocket") {
		return refuseWebSocket
	}
	switch {
	case ctx.IsPost() && !wholeServer:
		return refuseContent(f)
	case (ctx.IsGet() || ctx.IsHead()) && !wholeServer && !hasQuery && len(ctx.Request.Body()) == 0:
		return nil
	case ctx.IsOptions() && (wholeServer || f.origin.count > 0 && f.preflightMethod.count > 0):
		return nil
	}
	return refuseMethod
}

// refuseContent decides about what a body is declared to be. Only types that a
// page cannot send to another site without a preflight are taken.
func refuseContent(f *fields) *refusal {
	if f.contentEncoding.count > 0 {
		return refuseEncoding
	}
	mediaType, _, _ := bytes.Cut(f.contentType.value, []byte{';'})
	mediaType = trim(mediaType)
	if f.contentType.count == 1 &&
		(equalFold(mediaType, contentType) ||
			equalFold(mediaType, "application/json-rpc") ||
			equalFold(mediaType, "application/jsonrequest")) {
		return nil
	}
	return refuseType
}

func (v *service) writeRefusal(ctx *fasthttp.RequestCtx, r *refusal) {
	ctx.SetStatusCode(r.status)
	ctx.SetContentType(contentType)
	if r == refuseMethod {
		ctx.Response.Header.Set("Allow", "POST, GET, HEAD, OPTIONS")
	}
	if r.close {
		ctx.SetConnectionClose()
		if c, ok := ctx.Conn().(*conn); ok {
			c.answerAndLinger(v.options.WriteTimeout)
		}
	}
	if r.status == fasthttp.StatusUnauthorized {
		ctx.Response.Header.Set("WWW-Authenticate", "Bearer")
	}
	ctx.SetBody(r.body())
}
