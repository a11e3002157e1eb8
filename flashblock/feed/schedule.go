// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"slices"
	"time"
)

// A Schedule decides what becomes of each message in turn. Without orders every
// message is sent when it comes. Orders are carried out one after the other: after
// Drop(2) and Duplicate(1), two messages are lost and the third is sent twice. It
// is pure but for what it remembers, and belongs to one goroutine. The zero value
// is ready.
type Schedule struct {
	orders  []order
	stalled bool
	held    [][]byte // while stalled, or waiting for the rest of a reordering
}

type order struct {
	kind  orderKind
	left  int
	delay time.Duration
}

type orderKind int

const (
	drop orderKind = iota
	duplicate
	delay
	reorder
)

// The most that a Schedule keeps. Beyond, the oldest message of a stalled feed is
// lost, as it would be in a full buffer anywhere else, and orders are cut short.
const (
	maxHeld   = 1024
	maxOrders = 64
)

// An Outgoing is a message and how long it has to wait before it is sent.
type Outgoing struct {
	Data  []byte
	After time.Duration
}

// Drop loses the next n messages.
func (s *Schedule) Drop(n int) { s.add(order{kind: drop, left: n}) }

// Duplicate sends each of the next n messages twice.
func (s *Schedule) Duplicate(n int) { s.add(order{kind: duplicate, left: n}) }

// Delay sends each of the next n messages d later than it came. Others may
// overtake them.
func (s *Schedule) Delay(n int, d time.Duration) { s.add(order{kind: delay, left: n, delay: d}) }

// Reorder sends the next n messages in reverse order, when the last has come.
func (s *Schedule) Reorder(n int) { s.add(order{kind: reorder, left: min(n, maxHeld)}) }

func (s *Schedule) add(o order) {
	if o.left > 0 && len(s.orders) < maxOrders {
		s.orders = append(s.orders, o)
	}
}

// Stall holds all messages back until Resume.
func (s *Schedule) Stall() { s.stalled = true }

// Resume ends a Stall and returns what was held back, in order.
func (s *Schedule) Resume() []Outgoing {
	if !s.stalled {
		return []Outgoing{}
	}
	s.stalled = false
	held := s.held
	s.held = nil
	out := make([]Outgoing, len(held))
	for i, data := range held {
		out[i].Data = data
	}
	return out
}

// Next takes in one message and returns what to send, which may be nothing.
func (s *Schedule) Next(data []byte) []Outgoing {
	if s.stalled {
		s.held = append(s.held, data)
		if len(s.held) > maxHeld {
			s.held = slices.Delete(s.held, 0, 1)
		}
		return []Outgoing{}
	}
	if len(s.orders) == 0 {
		return []Outgoing{{Data: data}}
	}
	o := &s.orders[0]
	o.left--
	done := o.left == 0
	kind, after := o.kind, o.delay
	if done {
		s.orders = slices.Delete(s.orders, 0, 1)
	}
	switch kind {
	case duplicate:
		return []Outgoing{{Data: data}, {Data: data}}
	case delay:
		return []Outgoing{{Data: data, After: after}}
	case reorder:
		s.held = append(s.held, data)
		if !done {
			return []Outgoing{}
		}
		return s.reversed()
	default: // drop
		return []Outgoing{}
	}
}

func (s *Schedule) reversed() []Outgoing {
	out := make([]Outgoing, 0, len(s.held))
	for _, data := range slices.Backward(s.held) {
		out = append(out, Outgoing{Data: data})
	}
	s.held = nil
	return out
}
