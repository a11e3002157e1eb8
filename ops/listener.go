// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"io"
	"log"
	"net"
	"sync"
)

// limit bounds the connections of a listener that are open at once. Further ones
// wait to be accepted: a crowd on this port must not use up the file descriptors
// that the store and JSON-RPC need.
func limit(l net.Listener, most int) net.Listener {
	return &limited{Listener: l, places: make(chan struct{}, most), closed: make(chan struct{})}
}

type limited struct {
	net.Listener
	places chan struct{} // one for each open connection; Accept waits while it is full
	closed chan struct{}
	once   sync.Once
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &counted{Conn: c, places: l.places}, nil
}

// Close implements net.Listener.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// counted is a connection that gives its place back when it is closed.
type counted struct {
	net.Conn
	places chan struct{}
	once   sync.Once
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.once.Do(func() { <-c.places })
	return c.Conn.Close()
}

// silent drops what net/http has to say about clients that misbehave: there is
// nothing that an operator could do about it.
func silent() *log.Logger { return log.New(io.Discard, "", 0) }
