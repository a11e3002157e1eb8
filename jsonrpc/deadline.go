// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"net"
	"time"
)

// deadlines keep a connection from being given a deadline that nobody waits
// for: with each request come four, and a timer in the runtime is moved for each.
// One for reading is passed on when something is read, which a request that came
// in one piece never does; one that is only a little later than the one in force
// is not passed on at all, so that a timeout may come that little early.
//
// They belong to the goroutine that reads and writes.
type deadlines struct {
	slack       time.Duration
	wanted      time.Time // for reading
	read, write time.Time // in force
}

// shortly is how much of the shortest timeout may be missing at its end.
const shortly = 8

func (o *Options) deadlineSlack() time.Duration {
	return min(o.HeaderTimeout, o.BodyTimeout, o.WriteTimeout, o.IdleTimeout) / shortly
}

// holds reports whether a deadline that is in force does for another.
func (d *deadlines) holds(inForce, wanted time.Time) bool {
	return !inForce.IsZero() && !wanted.Before(inForce) && wanted.Sub(inForce) < d.slack
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.deadlines.wanted = t
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error {
	d := &c.deadlines
	if d.holds(d.write, t) {
		return nil
	}
	d.write = t
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	c.deadlines.wanted, c.deadlines.read, c.deadlines.write = t, t, t
	return c.Conn.SetDeadline(t)
}

// arm puts the deadline for reading in force.
func (d *deadlines) arm(c net.Conn) error {
	if d.wanted.Equal(d.read) || d.holds(d.read, d.wanted) {
		return nil
	}
	d.read = d.wanted
	return c.SetReadDeadline(d.wanted)
}
