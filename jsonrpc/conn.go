// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// After an answer that ends a connection, the client gets this much time and
// may send this many bytes to notice. Closing while its bytes are still
// arriving would reset the connection and destroy the answer.
const (
	lingerTime  = 5 * time.Second
	lingerBytes = 64 << 20
)

var (
	errNotHTTP = errors.New("the first byte does not begin an HTTP request")
	errHeld    = errors.New("no room for the request body")
)

// A conn is one connection of a service. Its busy flag lets a service that is
// draining end the connections on which nothing is under way.
type conn struct {
	net.Conn
	service *service

	deadlines deadlines

	// Used by the reading goroutine only.
	greeted  bool // a byte has been read
	received int  // bytes of the request under way
	hold     hold // for them

	busy   atomic.Bool // part of a request has been read and it is not answered yet
	linger atomic.Bool
}

// serve answers the requests of the connection until it ends.
func (c *conn) serve() {
	// The error is the client's: it has been answered, or it is gone.
	_ = c.service.http.ServeConn(c)
	c.hold.release(c.service.Server)
}

// Read also refuses what is not HTTP at the first byte, such as TLS, instead of
// waiting for the rest of a header that never comes. A big p is memory that was
// set aside for a body of declared length.
func (c *conn) Read(p []byte) (int, error) {
	// Before asking whether the service ends: wake comes after that is said, and
	// what it does to the connection must not be undone.
	if err := c.deadlines.arm(c.Conn); err != nil {
		return 0, err
	}
	if c.service.draining() && !c.busy.Load() {
		return 0, io.EOF
	}
	if len(p) > keptPerConn && !c.hold.extend(c.service.Server, c.received+len(p)) {
		return 0, errHeld
	}
	n, err := c.Conn.Read(p)
	switch {
	case n == 0 && c.service.draining() && !c.busy.Load():
		return 0, io.EOF // woken by wake, not by the client
	case n == 0:
		return n, err
	case !c.greeted && !beginsRequest(p[0]):
		return 0, errNotHTTP
	}
	c.greeted = true
	c.busy.Store(true)
	if c.received += n; !c.hold.extend(c.service.Server, c.received) {
		return 0, errHeld
	}
	return n, err
}

// beginsRequest reports whether c may come first: a letter of a method, or an
// empty line, which is tolerated before a request.
func beginsRequest(c byte) bool {
	return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || c == '\r' || c == '\n'
}

// wake ends a Read that waits for a next request.
func (c *conn) wake() {
	if !c.busy.Load() {
		// A connection that cannot take a deadline is closed and needs no waking.
		_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// answered notes that the request under way is done with.
func (c *conn) answered() {
	c.received = 0
	c.hold.release(c.service.Server)
}

// abort ends the connection at once.
func (c *conn) abort() {
	// The connection is given up; there is nobody to tell.
	_ = c.Conn.Close()
}

// answerAndLinger prepares for an answer while the client is still sending.
func (c *conn) answerAndLinger(writeTimeout time.Duration) {
	c.linger.Store(true)
	// Without the deadline the write is bounded by the client's patience only;
	// a connection that refuses it is closed and fails the write anyway.
	_ = c.Conn.SetWriteDeadline(time.Now().Add(writeTimeout))
}

// Close lingers first where the last answer asked for it.
func (c *conn) Close() error {
	if c.linger.Load() {
		lingerOn(c.Conn)
	}
	return c.Conn.Close()
}

// lingerOn lets the client read what was written last.
func lingerOn(c net.Conn) {
	half, ok := c.(interface{ CloseWrite() error })
	if ok && half.CloseWrite() == nil && c.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		// However this ends, closing is what comes next.
		_, _ = io.CopyN(io.Discard, c, lingerBytes)
	}
}
