// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"context"
	"fmt"
	"net"
	"time"
)

// Options shape a Server. The zero Options are what a node on the local
// machine wants; a value of zero or less means the default.
type Options struct {
	// AllowedHosts are the names, beside IP addresses, under which the server
	// may be asked; "*" allows all. Nil means localhost.
	AllowedHosts []string

	// CORSOrigins are the origins whose web pages may read answers; "*" allows
	// all. Nil means none.
	CORSOrigins []string

	MaxBody     int // bytes of a request body, 5 MiB
	MaxBatch    int // entries of a batch, 1000
	MaxResponse int // bytes of an answer before compression, 25 MB

	// MaxConnections bounds the open connections, and with them the requests
	// under way, since a connection carries one at a time. Default 4096.
	MaxConnections int

	HeaderTimeout   time.Duration // to receive a header, 10 s
	BodyTimeout     time.Duration // to receive a body after its header, 30 s
	WriteTimeout    time.Duration // to send an answer, 30 s
	IdleTimeout     time.Duration // between two requests of a connection, 120 s
	ShutdownTimeout time.Duration // to finish requests at the end, 5 s

	// OnPanic is told about each panic of the Handler, which the caller sees
	// as an internal error. It must be safe for concurrent use. Nil means that
	// nobody wants to know.
	OnPanic func(value any, stack []byte)
}

func (o Options) withDefaults() Options {
	orDefault(&o.MaxBody, 5<<20)
	orDefault(&o.MaxBatch, 1000)
	orDefault(&o.MaxResponse, 25*1000*1000)
	orDefault(&o.MaxConnections, 4096)
	orDefault(&o.HeaderTimeout, 10*time.Second)
	orDefault(&o.BodyTimeout, 30*time.Second)
	orDefault(&o.WriteTimeout, 30*time.Second)
	orDefault(&o.IdleTimeout, 120*time.Second)
	orDefault(&o.ShutdownTimeout, 5*time.Second)
	return o
}

func orDefault[T int | time.Duration](option *T, value T) {
	if *option <= 0 {
		*option = value
	}
}

// A Server answers JSON-RPC over HTTP. It is safe for concurrent use.
type Server struct {
	handler Handler
	options Options
}

// NewServer returns a Server whose calls are answered by h.
func NewServer(h Handler, o Options) *Server {
	return &Server{handler: h, options: o.withDefaults()}
}

// Serve answers on l until ctx ends, then lets requests under way finish for
// Options.ShutdownTimeout, and cuts off those that have not. It closes l, and
// no goroutine of it is left when it returns; a Handler that goes on after its
// context ended keeps it from returning.
//
// The error is nil when ctx ended and every request was answered.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	requests, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	v := newService(s.handler, s.options, requests)

	stop := context.AfterFunc(ctx, func() { v.stop(l) })
	err := v.accept(ctx, l)
	stop()
	v.stop(l)

	if n := v.drain(giveUp); n > 0 && err == nil {
		err = fmt.Errorf("drain: %d connections cut off after %v", n, s.options.ShutdownTimeout)
	}
	return err
}
