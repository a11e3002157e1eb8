// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/coder/websocket"
)

// Path is where WebSocket clients find the feed, as in front of public ones.
const Path = "/ws"

// maxRequest bounds what a client may say in one message; nothing of it is used.
const maxRequest = 4096

// ServeHTTP serves one WebSocket client at Path until it goes, lags or the
// Publisher ends. Data flows as soon as it is connected. A client too many gets
// status 429.
func (p *Publisher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != Path {
		http.NotFound(w, r)
		return
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	default:
		http.Error(w, "too many connections", http.StatusTooManyRequests)
		return
	}
	// Subscribed before the handshake ends, so that a client has missed nothing
	// that is sent once it is connected.
	// Run itself counts the client, so that it cannot be waiting already.
	sub, err := p.subscribe(r.Context(), func() { p.clients.Add(1) })
	if err != nil {
		http.Error(w, "feed closed", http.StatusServiceUnavailable)
		return
	}
	defer p.clients.Done()
	defer sub.Close()
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has answered
	}
	// The connection is taken over from net/http, whose context does not end
	// with it.
	p.serve(context.WithoutCancel(r.Context()), conn, sub)
}

// serve sends until something ends it, and leaves no goroutine behind.
func (p *Publisher) serve(ctx context.Context, conn *websocket.Conn, sub *Subscription) {
	ctx, cancel := context.WithCancel(ctx)
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer cancel()
		ignoreAll(ctx, conn)
	}()
	pinged := make(chan struct{})
	go func() {
		defer close(pinged)
		defer cancel()
		p.ping(ctx, conn)
	}()
	switch err := p.write(ctx, conn, sub); {
	case errors.Is(err, ErrLagging):
		_ = conn.Close(websocket.StatusTryAgainLater, err.Error()) // it is going either way
	case errors.Is(err, ErrClosed):
		_ = conn.Close(websocket.StatusGoingAway, err.Error()) // it is going either way
	default:
		_ = conn.CloseNow() // it is gone
	}
	cancel()
	<-read
	<-pinged
}

func (p *Publisher) write(ctx context.Context, conn *websocket.Conn, sub *Subscription) error {
	kind := websocket.MessageText
	if p.options.Brotli {
		kind = websocket.MessageBinary
	}
	for {
		data, err := sub.next(ctx)
		if err != nil {
			return err
		}
		if err := p.writeOne(ctx, conn, kind, data); err != nil {
			return err
		}
		select {
		case <-sub.ended:
			return sub.err // what is in the buffer is of no use without what follows
		default:
		}
	}
}

// writeOne sends one message. When the Publisher ends, a client that does not
// take it is not waited for.
func (p *Publisher) writeOne(ctx context.Context, conn *websocket.Conn, kind websocket.MessageType, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, p.options.WriteTimeout)
	defer cancel()
	defer context.AfterFunc(p.life, cancel)()
	return conn.Write(ctx, kind, data)
}

// ignoreAll reads what a client sends, so that pongs and the end are seen.
func ignoreAll(ctx context.Context, conn *websocket.Conn) {
	conn.SetReadLimit(maxRequest)
	for {
		_, r, err := conn.Reader(ctx)
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		if err != nil {
			return
		}
	}
}
