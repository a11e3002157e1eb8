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

// A peer is the other end of one connection.
type peer interface {
	// serve answers until the connection ends, and ends it.
	serve()

	// wake ends the connection where nothing is under way on it. It does not
	// wait.
	wake()

	// abort ends the connection at once.
	abort()
}

// A service is one run of Server.Serve or Server.ServeWebSocket: its
// connections and what they share.
type service struct {
	*Server
	requests context.Context // of every request; shared, since one each would be garbage
	open     func(*service, net.Conn) peer
	http     *fasthttp.Server

	stopping atomic.Bool
	serving  sync.WaitGroup // one per connection

	mu    sync.Mutex
	peers map[peer]struct{} // guarded by mu
}

func newService(s *Server, requests context.Context, open func(*service, net.Conn) peer) *service {
	v := &service{Server: s, requests: requests, open: open, peers: make(map[peer]struct{})}
	o := s.options
	v.http = &fasthttp.Server{
		Handler:        v.serveHTTP,
		ErrorHandler:   v.unreadable,
		HeaderReceived: v.headerReceived,
		ConnState:      v.stateChanged,
		Logger:         log.New(io.Discard, "", 0),

		Concurrency:        o.MaxConnections,
		ReadBufferSize:     o.MaxHeader,
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
			v.serve(c)
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
func (v *service) serve(c net.Conn) {
	if !takeWithin(&v.counts.connections, 1, int64(v.options.MaxConnections)) {
		v.counts.refusedConnections.Add(1)
		v.turnAway(c)
		return
	}
	p := v.open(v, c)
	v.mu.Lock()
	v.peers[p] = struct{}{}
	v.mu.Unlock()
	v.serving.Go(func() {
		p.serve()
		v.mu.Lock()
		delete(v.peers, p)
		v.mu.Unlock()
		v.counts.connections.Add(-1)
	})
}

// turnAway says that there are too many connections. It does so without
// waiting, so the client may see a reset instead.
func (v *service) turnAway(c net.Conn) {
	if c.SetWriteDeadline(time.Now().Add(time.Second)) == nil {
		// Best effort, as the closing below is.
		_, _ = c.Write(v.refusalResponse(refuseCrowd))
	}
	_ = c.Close() // nothing is under way on it
}

// stateChanged notes when a connection has answered what it read.
func (v *service) stateChanged(nc net.Conn, state fasthttp.ConnState) {
	c, ok := nc.(*conn)
	if ok && (state == fasthttp.StateIdle || state == fasthttp.StateActive && c.greeted) {
		c.busy.Store(state == fasthttp.StateActive)
	}
	if ok && state == fasthttp.StateIdle {
		c.answered()
	}
}

// drain waits for all connections to end and returns how many it had to cut
// off when its patience ended. It then gives up on their requests.
func (v *service) drain(giveUp func()) (cut int) {
	v.each(peer.wake)
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
	cut = v.each(peer.abort)
	giveUp()
	<-ended
	return cut
}

func (v *service) each(do func(peer)) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	for p := range v.peers {
		do(p)
	}
	return len(v.peers)
}
