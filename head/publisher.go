// SPDX-License-Identifier: Apache-2.0

package head

import (
	"encoding/hex"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"glimpse/chain"
)

// ErrClosed is the answer to who waits for a snapshot where none is published
// any more.
var ErrClosed = errors.New("no snapshot is published")

// A Publisher hands the current State, and what is pre-confirmed on top of it,
// from one writer to many readers.
type Publisher struct {
	// Now is the clock that overlays go out of date by; nil means time.Now. It
	// is set before the first Publish.
	Now func() time.Time

	// Past answers for blocks without state here: those before the oldest one,
	// and hashes that are not known, which may be of such. It is given a number
	// or a hash and the miss that is the answer otherwise, which it returns
	// where it has nothing, and it must say nothing about blocks from
	// miss.Oldest on. Its View is good until the Lease is released. Nil means
	// that there is no such place. It is set before the first Publish.
	Past func(sel chain.Selector, miss *chain.Miss) (chain.View, error)

	current atomic.Pointer[published]
	leases  sync.Pool // of *Lease, to be used again
}

// published is what is swapped: a State and its Overlay, so that nobody can see
// one without the other (P1), with all that can be said of them beforehand.
type published struct {
	State
	overlay    Overlay // nil where nothing is pre-confirmed
	stamp      []byte
	superseded chan struct{} // closed when this is current no more

	// From goodUntil on this is read as bare, the same State without its
	// Overlay. Where bare is nil it is good for ever.
	goodUntil time.Time
	bare      *published
}

// newPublished says what s and o are from now on until goodUntil.
func newPublished(s State, o Overlay, goodUntil time.Time) *published {
	latest := s.Head()
	n := &published{State: s, overlay: o, goodUntil: goodUntil, superseded: make(chan struct{})}
	n.stamp = appendStamp(nil, latest, n.preconfirmed())
	if o != nil && !goodUntil.IsZero() {
		n.bare = &published{State: s, stamp: appendStamp(nil, latest, nil), superseded: n.superseded}
	}
	return n
}

// preconfirmed returns the newest pre-confirmed block, nil where there is none.
func (s *published) preconfirmed() *chain.Preconfirmed {
	if s.overlay == nil {
		return nil
	}
	b, _ := s.overlay.Preconfirmed() // fitting saw that there is one
	return b
}

// appendStamp renders "<number>:<hash>;pending=<number>.<index>", or
// ";pending=latest" where nothing is pre-confirmed.
func appendStamp(dst []byte, latest chain.Ref, pending *chain.Preconfirmed) []byte {
	dst = strconv.AppendUint(dst, uint64(latest.Number), 10)
	dst = append(dst, ":0x"...)
	dst = hex.AppendEncode(dst, latest.Hash[:])
	dst = append(dst, ";pending="...)
	if pending == nil {
		return append(dst, "latest"...)
	}
	dst = strconv.AppendUint(dst, pending.Header.Number.Uint64(), 10)
	dst = append(dst, '.')
	return strconv.AppendUint(dst, pending.Index, 10)
}

// Publish makes s what new Leases are taken on, and o what is pre-confirmed on
// it; nil is nothing. An Overlay on another block is not used (P3). Leases taken
// at goodUntil or later do not see o, whether or not something else was
// published by then; the zero time sets no bound.
//
// Publish takes over the caller's reference to s; the State before lives on
// until its last Lease is released. The State may be the one before, for the
// sake of another Overlay, with a reference of its own. It is called by one
// writer and waits for no reader.
func (p *Publisher) Publish(s State, o Overlay, goodUntil time.Time) {
	p.swap(newPublished(s, fitting(s, o), goodUntil))
}

// Close withdraws the current State. Leases already taken stay good, and who
// waits for one is told ErrClosed; Acquire must not be called any more.
func (p *Publisher) Close() { p.swap(nil) }

func (p *Publisher) swap(s *published) {
	if old := p.current.Swap(s); old != nil {
		close(old.superseded)
		old.Release()
	}
}

// retain returns what is current with a reference of the caller's own, nil where
// nothing is.
func (p *Publisher) retain() *published {
	for {
		// Between the load and Retain a writer may have published another and
		// the last reader of this one may have gone; then there is a newer one.
		if s := p.current.Load(); s == nil || s.Retain() {
			return s
		}
	}
}

// now returns s as it is to be read at this moment. It is asked once for each
// Lease, so that a request does not lose its Overlay half-way (P1).
func (s *published) now(clock func() time.Time) *published {
	if s.bare == nil {
		return s
	}
	if clock == nil {
		clock = time.Now
	}
	if clock().Before(s.goodUntil) {
		return s
	}
	return s.bare
}
