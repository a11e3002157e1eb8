// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import "sync/atomic"

// Stats are what a Server is doing, and what it has refused since it was made.
type Stats struct {
	InFlight             int   // bodies being answered
	Connections          int   // open, of both transports
	WebSocketConnections int   // of these, over WebSocket
	Subscriptions        int   // open
	Held                 int64 // bytes of long bodies and answers

	RefusedConnections uint64 // over Options.MaxConnections
	RefusedInFlight    uint64 // bodies over Options.MaxInFlight
	RefusedMemory      uint64 // bodies and answers over Options.MaxHeld
	RefusedKey         uint64 // requests without a known key
	RefusedRate        uint64 // bodies over the rate of their key
	SlowConsumers      uint64 // WebSocket clients that did not read what they asked for
}

// counts are the Stats while they are counted.
type counts struct {
	inFlight      atomic.Int64
	connections   atomic.Int64 // of both transports
	websocket     atomic.Int64
	subscriptions atomic.Int64
	held          atomic.Int64

	refusedConnections atomic.Uint64
	refusedInFlight    atomic.Uint64
	refusedMemory      atomic.Uint64
	refusedKey         atomic.Uint64
	refusedRate        atomic.Uint64
	slowConsumers      atomic.Uint64
}

// Stats returns the counts of now. They are read one after the other, while
// requests go on.
func (s *Server) Stats() Stats {
	c := &s.counts
	return Stats{
		InFlight:             int(c.inFlight.Load()),
		Connections:          int(c.connections.Load()),
		WebSocketConnections: int(c.websocket.Load()),
		Subscriptions:        int(c.subscriptions.Load()),
		Held:                 c.held.Load(),

		RefusedConnections: c.refusedConnections.Load(),
		RefusedInFlight:    c.refusedInFlight.Load(),
		RefusedMemory:      c.refusedMemory.Load(),
		RefusedKey:         c.refusedKey.Load(),
		RefusedRate:        c.refusedRate.Load(),
		SlowConsumers:      c.slowConsumers.Load(),
	}
}

// takeWithin adds n to a count unless that would exceed most.
func takeWithin(count *atomic.Int64, n, most int64) bool {
	if count.Add(n) <= most {
		return true
	}
	count.Add(-n)
	return false
}
