// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// headerBytes is the buffer that each connection reads through, and so the
// largest header that is accepted.
const headerBytes = 32 << 10

// A service is one run of Server.Serve: its connections and what they share.
type service struct {
	handler  Handler
	options  Options
	requests context.Context // of every request; shared, since one each would be garbage

	hosts     hosts
	cors      cors
	zipper    zipper
	exchanges sync.Pool // of *exchange
	http      *fasthttp.Server

	stopping atomic.Bool
	serving  sync.WaitGroup // one per connection

	mu    sync.Mutex
	conns map[*conn]struct{} // guarded by mu
}

func newService(h Handler, o Options, requests context.Context) *service {
	v := &service{
		handler:  h,
		options:  o,
		requests: requests,
		hosts:    newHosts(o.AllowedHosts),
		cors:     newCORS(o.CORSOrigins),
		conns:    make(map[*conn]struct{}),
	}
	v.http = &fasthttp.Server{
		Handler:        v.serveHTTP,
		ErrorHandler:   v.unreadable,
		HeaderReceived: v.headerReceived,
		ConnState:      v.stateChanged,
		Logger:         log.New(io.Discard, "", 0),

		Concurrency:        o.MaxConnections,
		ReadBufferSize:     headerBytes,
		MaxRequestBodySize: o.MaxBody,
		ReadTimeout:        o.HeaderTimeout, // headerReceived gives the body its own
		WriteTimeout:       o.WriteTimeout,
		IdleTimeout:        o.IdleTimeout,

		DisablePreParseMultipartForm: true,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		SecureErrorLogMessage:        true,
	}
	return v
}

// draining reports whether connections should end when they can.
func (v *service) draining() bool { return v.stopping.Load() }

// stop ends accepting.
func (v *service) stop(l net.Listener) {
	v.stopping.Store(true)
	// A listener that fails to close is closed already.
	_ = l.Close()
}

// accept serves connections until ctx ends or the listener fails for good.
func (v *service) accept(ctx context.Context, l net.Listener) error {
	var pause time.Duration
	for {
		c, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			v.serve(&conn{Conn: c, service: v})
		case v.draining():
			return nil
		case !isTemporary(err):
			return fmt.Errorf("accept: %w", err)
		default:
			// Out of file descriptors, most likely: closing connections mends it.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(pause):
			}
		}
	}
}

// isTemporary asks the way net/http does. The method is deprecated for being
// vague, but nothing else tells these errors apart on every system.
func isTemporary(err error) bool {
	var temporary interface{ Temporary() bool }
	return errors.As(err, &temporary) && temporary.Temporary()
}

// serve runs c in a goroutine of its own, or turns it away.
func (v *service) serve(c *conn) {
	v.mu.Lock()
	full := len(v.conns) >= v.options.MaxConnections
	if !full {
		v.conns[c] = struct{}{}
	}
	v.mu.Unlock()
	if full {
		turnAway(c.Conn)
		return
	}
	v.serving.Go(func() {
		// The error is the client's: it has been answered, or it is gone.
		_ = v.http.ServeConn(c)
		v.mu.Lock()
		delete(v.conns, c)
		v.mu.Unlock()
	})
}

// turnAway says that there are too many connections. It does so without
// waiting, so the client may see a reset instead.
func turnAway(c net.Conn) {
	body := appendErrorResponse(nil, nil, &Error{Code: CodeInvalidRequest, Message: "too many connections"})
	if c.SetWriteDeadline(time.Now().Add(time.Second)) == nil {
		// Best effort, as the closing below is.
		_, _ = fmt.Fprintf(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
			contentType, len(body), body)
	}
	_ = c.Close() // nothing is under way on it
}

// stateChanged notes when a connection has answered what it read.
func (v *service) stateChanged(nc net.Conn, state fasthttp.ConnState) {
	if c, ok := nc.(*conn); ok && (state == fasthttp.StateIdle || state == fasthttp.StateActive && c.greeted) {
		c.busy.Store(state == fasthttp.StateActive)
	}
}

// drain waits for all connections to end and returns how many it had to cut
// off when its patience ended. It then gives up on their requests.
func (v *service) drain(giveUp func()) (cut int) {
	v.each((*conn).wake)
	ended := make(chan struct{})
	go func() {
		v.serving.Wait()
		close(ended)
	}()
	patience := time.NewTimer(v.options.ShutdownTimeout)
	defer patience.Stop()
	select {
	case <-ended:
		return 0
	case <-patience.C:
	}
	// In this order a request that ends because of giveUp is one that was cut.
	cut = v.each((*conn).abort)
	giveUp()
	<-ended
	return cut
}

func (v *service) each(do func(*conn)) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	for c := range v.conns {
		do(c)
	}
	return len(v.conns)
}
