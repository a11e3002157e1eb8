// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
)

// A Subscriber is a Handler that can also push, to clients that are connected
// over WebSocket.
type Subscriber interface {
	Handler

	// Subscribe opens what params ask for, or says why not. The params are
	// valid until it returns; the context ends with the subscription.
	Subscribe(ctx context.Context, params Values) (Subscription, *Error)
}

// A Subscription yields notifications, one at a time. It is used by one
// goroutine. What waits to be yielded is bounded by its maker: nothing is
// queued here.
type Subscription interface {
	// Next appends the result of the next notification, one JSON value, to
	// dst, waiting for it within ctx, and returns the extended slice.
	//
	// An error ends the connection, and its text is what the client is told:
	// ErrSlow, or what wraps it, for a client that did not keep up.
	Next(ctx context.Context, dst []byte) ([]byte, error)

	// Close is called once, after the last Next.
	Close()
}

// ErrSlow ends a Subscription whose client did not keep up.
var ErrSlow = errors.New("slow consumer: notifications were not read in time")

var errNothingNext = errors.New("internal error")

// pushing are the methods by which a client subscribes, and who answers them.
// The zero pushing has none.
type pushing struct {
	subscriber  Subscriber
	subscribe   string
	unsubscribe string
	head        string // of a notification, up to the id
}

func newPushing(h Handler, namespace string) pushing {
	s, ok := h.(Subscriber)
	if !ok || namespace == "" {
		return pushing{}
	}
	return pushing{
		subscriber:  s,
		subscribe:   namespace + "_subscribe",
		unsubscribe: namespace + "_unsubscribe",
		head:        `{"jsonrpc":"2.0","method":"` + namespace + `_subscription","params":{"subscription":"`,
	}
}

// asks reports whether a method is one of these.
func (p *pushing) asks(method []byte) bool {
	return p.subscriber != nil && (string(method) == p.subscribe || string(method) == p.unsubscribe)
}

// push answers one of these methods. What it opens begins to push when the
// answer has been written.
func (x *exchange) push(method []byte, params Values) ([]byte, *Error) {
	if x.socket == nil {
		return nil, errNoNotifications
	}
	if string(method) == x.server.pushing.unsubscribe {
		id, err := onlyText(params)
		if err != nil {
			return nil, err
		}
		if !x.socket.unsubscribe(string(id)) {
			return nil, errNoSubscription
		}
		return append(x.out, "true"...), nil
	}
	// The id must reach the client, or it could never end what it began.
	if len(x.out)+len(`"0x"}]`)+2*idBytes > x.server.options.MaxResponse {
		return nil, errTooLarge
	}
	id, err := x.socket.subscribe(params)
	if err != nil {
		return nil, err
	}
	return appendString(x.out, id), nil
}

// onlyText returns the one parameter of a call, which must be a string.
func onlyText(params Values) ([]byte, *Error) {
	v, ok := params.Next()
	if !ok {
		return nil, InvalidParams("missing value for required argument 0")
	}
	text, ok := v.Text()
	if !ok {
		return nil, InvalidParams("invalid argument 0: want the id of a subscription")
	}
	if _, more := params.Next(); more {
		return nil, InvalidParams("too many arguments, want at most 1")
	}
	return text, nil
}

// idBytes make an id that no other client can guess.
const idBytes = 16

func newID() string {
	var b [idBytes]byte
	// It does not fail: without random numbers the process ends.
	_, _ = rand.Read(b[:])
	return "0x" + hex.EncodeToString(b[:])
}

// A pump pushes the notifications of one subscription to its client: it takes
// one, writes it, and takes the next.
type pump struct {
	socket       *socket
	subscription Subscription
	head         string // of each notification, up to its result
	life         context.Context
	end          context.CancelFunc
	ended        chan struct{} // closed when run returns; nil before it is started
}

// start lets the pump run in a goroutine of its own.
func (p *pump) start() {
	p.ended = make(chan struct{})
	go func() {
		defer close(p.ended)
		if err := p.run(); err != nil && p.life.Err() == nil {
			p.socket.fail(err)
		}
	}()
}

// stop ends the pump and waits for it: nothing is pushed afterwards.
func (p *pump) stop() {
	p.end()
	if p.ended != nil {
		<-p.ended
	}
	p.close()
}

func (p *pump) close() {
	defer func() {
		if v := recover(); v != nil {
			p.socket.service.panicked(v)
		}
	}()
	p.subscription.Close()
}

func (p *pump) run() error {
	var buffer []byte
	for p.life.Err() == nil {
		buffer = append(buffer[:0], p.head...)
		out, err := p.next(buffer)
		if err != nil {
			return err
		}
		if len(out) <= len(p.head) {
			return errNothingNext
		}
		out = append(out, "}}"...)
		if err := p.socket.write(out); err != nil {
			return nil // the connection has been ended
		}
		if buffer = out; cap(buffer) > keptPerSocket {
			buffer = nil
		}
	}
	return nil
}

// next asks for the next notification. A panic ends the connection: a client
// that missed something must not believe that it did not.
func (p *pump) next(dst []byte) (out []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			p.socket.service.panicked(v)
			err = errNothingNext
		}
	}()
	return p.subscription.Next(p.life, dst)
}
