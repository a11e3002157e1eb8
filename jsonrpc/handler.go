// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import "context"

// A Handler gives calls their meaning. It is safe for concurrent use.
type Handler interface {
	// Has reports whether method exists. It is asked only where a call is wrong
	// in another way too, to say the more useful thing.
	Has(method []byte) bool

	// Begin opens the Session that answers everything in one request body. It
	// may wait, within ctx, and must not return nil: a request that cannot be
	// served gets a Session whose calls all say why. The header is valid until
	// Begin returns.
	//
	// A body without a call, such as one that is not JSON, opens no Session, and
	// neither does one that is over a limit.
	Begin(ctx context.Context, header Header) Session
}

// A Session answers the calls of one request, one after the other, from one
// state of affairs (P1). It is used by one goroutine.
type Session interface {
	// Call appends the result of one call to dst, as one JSON value, and
	// returns the extended slice. On an error what it returns of dst is
	// ignored. The method and the params are valid until Call returns.
	//
	// A method that does not exist gives MethodNotFound, whatever the params.
	// The context ends when the server gives up on its requests.
	Call(ctx context.Context, dst []byte, method []byte, params Values) ([]byte, *Error)

	// End is called once, after the last Call.
	End()
}

// A Stamped Session has a header field for the response, such as the name of
// the snapshot that it reads (P7).
type Stamped interface {
	// Stamp is called once, after Begin. The value is valid until End.
	Stamp() (name string, value []byte)
}

// A Stamper is a Handler that has a header field for the responses that no
// Session stands behind, too: refusals, health checks, nonsense (P7).
type Stamper interface {
	// AppendStamp returns the name of the field and its value, appended to
	// dst. An empty name means that there is none now.
	AppendStamp(dst []byte) (name string, value []byte)
}

// A Header holds the header fields of a request.
type Header interface {
	// Peek returns the value of a field, nil where it is absent. Where one
	// of Options.Headers came more than once, its values are joined by commas.
	// The value must not be modified.
	Peek(name string) []byte
}
