// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// Options shape a Server. The zero Options are what a node on the local
// machine wants; a value of zero or less means the default.
type Options struct {
	// AllowedHosts are the names, beside IP addresses, under which the server
	// may be asked; "*" allows all. Nil means localhost.
	AllowedHosts []string

	// CORSOrigins are the origins whose web pages may read answers over HTTP;
	// "*" allows all. Nil means none.
	CORSOrigins []string

	// WebSocketOrigins are the origins whose web pages may connect over
	// WebSocket; "*" allows all. Of scheme://host:port, what is left out of a
	// name may be anything. Empty means http://localhost and http:// with the
	// name of this machine. Who sends no Origin is no web page and may connect.
	WebSocketOrigins []string

	// Gate decides who may ask. Nil means everybody, and that a key in the
	// path is a path that does not exist.
	Gate Gate

	// Headers are the request header fields that the Handler asks for, up to
	// four of them. Others can be asked for too, but cost a search each, and
	// are absent over WebSocket, where these are taken from the handshake.
	Headers []string

	// Namespace is what the methods of a Subscriber are called by: "eth"
	// makes eth_subscribe, eth_unsubscribe and eth_subscription. Empty means
	// that there are none.
	Namespace string

	MaxBody     int // bytes of a request body, 5 MiB
	MaxHeader   int // bytes of a request header, 32 KiB; each HTTP connection has a buffer of this size
	MaxBatch    int // entries of a batch, 1000
	MaxResponse int // bytes of an answer before compression, 25 MB

	// MaxConnections bounds the open connections, of both transports
	// together. Default 4096.
	MaxConnections int

	// MaxInFlight bounds the bodies that are being answered at once, over both
	// transports. Default 2048.
	MaxInFlight int

	// MaxHeld bounds the bytes of all bodies and answers over 64 KiB that are
	// in memory because a client is slow to send or to read them, over both
	// transports. Default 512 MiB.
	MaxHeld int

	MaxSubscriptions    int // of one WebSocket connection, 128
	MaxAllSubscriptions int // of all connections together, 8192

	HeaderTimeout   time.Duration // to receive a header, 10 s
	BodyTimeout     time.Duration // to receive a body after its header, 30 s
	WriteTimeout    time.Duration // to send an answer or a notification, 30 s
	IdleTimeout     time.Duration // between two requests of an HTTP connection, 120 s
	PingInterval    time.Duration // between two pings of a WebSocket connection, and to answer one, 30 s
	ShutdownTimeout time.Duration // to finish requests at the end, 5 s

	// OnPanic is told about each panic of the Handler, which the caller sees
	// as an internal error. It must be safe for concurrent use. Nil means that
	// nobody wants to know.
	OnPanic func(value any, stack []byte)
}

func (o Options) withDefaults() Options {
	orDefault(&o.MaxBody, 5<<20)
	orDefault(&o.MaxHeader, 32<<10)
	orDefault(&o.MaxBatch, 1000)
	orDefault(&o.MaxResponse, 25*1000*1000)
	orDefault(&o.MaxConnections, 4096)
	orDefault(&o.MaxInFlight, 2048)
	orDefault(&o.MaxHeld, 512<<20)
	orDefault(&o.MaxSubscriptions, 128)
	orDefault(&o.MaxAllSubscriptions, 8192)
	orDefault(&o.HeaderTimeout, 10*time.Second)
	orDefault(&o.BodyTimeout, 30*time.Second)
	orDefault(&o.WriteTimeout, 30*time.Second)
	orDefault(&o.IdleTimeout, 120*time.Second)
	orDefault(&o.PingInterval, 30*time.Second)
	orDefault(&o.ShutdownTimeout, 5*time.Second)
	return o
}

func orDefault[T int | time.Duration](option *T, value T) {
	if *option <= 0 {
		*option = value
	}
}

// A Server answers JSON-RPC over HTTP and WebSocket. It is safe for concurrent
// use, and its limits hold for all that it serves together.
type Server struct {
	handler Handler
	stamper Stamper // nil where the handler is none
	options Options

	hosts   hosts
	cors    cors
	origins origins
	asked   []string // Options.Headers in lower case, as many as are looked for
	pushing pushing

	zipper    zipper
	exchanges sync.Pool // of *exchange
	counts    counts
}

// NewServer returns a Server whose calls are answered by h, which may also be
// a Subscriber and a Stamper.
func NewServer(h Handler, o Options) *Server {
	o = o.withDefaults()
	s := &Server{
		handler: h,
		options: o,
		hosts:   newHosts(o.AllowedHosts),
		cors:    newCORS(o.CORSOrigins),
		origins: newOrigins(o.WebSocketOrigins),
		pushing: newPushing(h, o.Namespace),
	}
	s.stamper, _ = h.(Stamper)
	for _, name := range o.Headers[:min(len(o.Headers), maxAsked)] {
		s.asked = append(s.asked, strings.ToLower(name))
	}
	return s
}

// ErrCutOff is for requests that had not ended when a Server stopped.
var ErrCutOff = errors.New("requests cut off")

// Serve answers over HTTP on l until ctx ends, then lets requests under way
// finish for Options.ShutdownTimeout, and cuts off those that have not. It
// closes l, and no goroutine of it is left when it returns; a Handler that goes
// on after its context ended keeps it from returning.
//
// The error is nil when ctx ended and every request was answered, and ErrCutOff
// where some were not.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	return s.run(ctx, l, func(v *service, c net.Conn) peer {
		return &conn{Conn: c, service: v, deadlines: deadlines{slack: v.options.deadlineSlack()}}
	})
}

// ServeWebSocket answers over WebSocket on l, and ends as Serve does. Clients
// that have nothing under way are told that the server goes away.
func (s *Server) ServeWebSocket(ctx context.Context, l net.Listener) error {
	return s.run(ctx, l, func(v *service, c net.Conn) peer { return newSocket(v, c) })
}

func (s *Server) run(ctx context.Context, l net.Listener, open func(*service, net.Conn) peer) error {
	requests, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	v := newService(s, requests, open)

	stop := context.AfterFunc(ctx, func() { v.stop(l) })
	err := v.accept(ctx, l)
	stop()
	v.stop(l)

	if n := v.drain(giveUp); n > 0 && err == nil {
		err = fmt.Errorf("%w: %d connections after %v", ErrCutOff, n, s.options.ShutdownTimeout)
	}
	return err
}
