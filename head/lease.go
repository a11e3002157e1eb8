// SPDX-License-Identifier: Apache-2.0

package head

import (
	"glimpse/chain"
)

// A Lease is one request's hold on one State: everything that the request, or
// the batch, asks is answered from it. A Lease belongs to one goroutine.
type Lease struct {
	publisher *Publisher
	state     *published
	views     [4]View // room for the views of a usual request, so that it allocates none
	used      int
	past      map[chain.Selector]chain.View // what Publisher.Past gave; nil before the first
}

// Acquire takes a Lease on what is current. The caller must Release it.
func (p *Publisher) Acquire() *Lease {
	l := p.acquire()
	if l == nil {
		panic("head: Acquire of a Publisher that is closed or has published nothing")
	}
	return l
}

// TryAcquire is Acquire where there may be nothing; then it is false.
func (p *Publisher) TryAcquire() (*Lease, bool) {
	l := p.acquire()
	return l, l != nil
}

// acquire returns nil where nothing is published.
func (p *Publisher) acquire() *Lease {
	s := p.retain()
	if s == nil {
		return nil
	}
	l, ok := p.leases.Get().(*Lease)
	if !ok {
		l = &Lease{publisher: p}
	}
	l.state = s.now(p.Now)
	return l
}

// Release ends the Lease. Views from it must not be used any more.
func (l *Lease) Release() {
	l.state.Release()
	clear(l.views[:l.used])
	l.state, l.used, l.past = nil, 0, nil
	l.publisher.leases.Put(l)
}

// Latest returns the newest sealed block.
func (l *Lease) Latest() chain.Ref { return l.state.Head() }

// Oldest returns the lowest block whose state can be read.
func (l *Lease) Oldest() chain.Number { return l.state.Oldest() }

// Header and Body return the RLP of a block that Locate found.
func (l *Lease) Header(n chain.Number) ([]byte, error) { return l.state.Header(n) }
func (l *Lease) Body(n chain.Number) ([]byte, error)   { return l.state.Body(n) }

// Receipts returns the receipts of a block that Locate found, as they are
// stored.
func (l *Lease) Receipts(n chain.Number) ([]byte, error) { return l.state.Receipts(n) }

// Transaction returns the sealed block that has a transaction and its place
// there; ok is false where none has it.
func (l *Lease) Transaction(h chain.Hash) (n chain.Number, index int, ok bool, err error) {
	return l.state.Transaction(h)
}

// View returns the state of the block that sel means. It is good until the
// Lease is released. State that is not here is a *chain.Miss, unless
// Publisher.Past has it.
func (l *Lease) View(sel chain.Selector) (chain.View, error) {
	n, err := l.Locate(sel)
	if err != nil {
		return l.pastHash(sel, err)
	}
	if n < l.state.Oldest() {
		return l.pastNumber(sel, n)
	}
	var overlay Overlay
	if sel.IsPending() {
		overlay = l.state.overlay
	}
	for i := range l.used {
		if l.views[i].number == n && l.views[i].overlay == overlay {
			return &l.views[i], nil
		}
	}
	if l.used == len(l.views) {
		return &View{state: l.state, number: n, overlay: overlay}, nil
	}
	v := &l.views[l.used]
	*v = View{state: l.state, number: n, overlay: overlay}
	l.used++
	return v, nil
}

// Locate returns the height of the sealed block that sel means; for pending it
// is latest, which pre-confirmed state stands on. A block that is not
// here is a *chain.Miss saying why; safe and finalized are chain.ErrNoTag while
// there is none.
func (l *Lease) Locate(sel chain.Selector) (chain.Number, error) {
	if n, ok := sel.Number(); ok {
		if n > l.state.Head().Number {
			return 0, l.miss(chain.Future)
		}
		return n, nil
	}
	if h, ok := sel.Hash(); ok {
		return l.locateHash(h)
	}
	switch {
	case sel.IsEarliest():
		return l.state.Oldest(), nil
	case sel.IsSafe():
		return tag(l.state.Safe())
	case sel.IsFinalized():
		return tag(l.state.Finalized())
	default: // latest, and pending
		return l.state.Head().Number, nil
	}
}

// locateHash answers only for canonical blocks, whether or not the caller said
// requireCanonical: state is kept for one branch, and the number of a block off
// it would lead to another block's state.
func (l *Lease) locateHash(h chain.Hash) (chain.Number, error) {
	n, canonical, err := l.state.Number(h)
	switch {
	case err != nil:
		return 0, err
	case !canonical:
		return 0, l.miss(chain.NotCanonical)
	}
	return n, nil
}

func tag(r chain.Ref, ok bool) (chain.Number, error) {
	if !ok {
		return 0, chain.ErrNoTag
	}
	return r.Number, nil
}

func (l *Lease) miss(why chain.Reason) *chain.Miss {
	return &chain.Miss{Reason: why, Oldest: l.state.Oldest(), Latest: l.state.Head().Number}
}

// A View is the state of one block within a Lease, or the pre-confirmed state.
type View struct {
	state   *published
	number  chain.Number
	overlay Overlay // nil for a sealed block
}

// Account, Slot and Code implement chain.View.
func (v *View) Account(a chain.Address) (chain.Account, error) {
	if v.overlay != nil {
		if account, ok := v.overlay.Account(a); ok {
			return account, nil
		}
	}
	return v.state.Account(v.number, a)
}

func (v *View) Slot(a chain.Address, k chain.Slot) (chain.Value, error) {
	if v.overlay != nil {
		if value, ok := v.overlay.Slot(a, k); ok {
			return value, nil
		}
	}
	return v.state.Slot(v.number, a, k)
}

func (v *View) Code(h chain.Hash) ([]byte, error) {
	if v.overlay != nil {
		if code, ok := v.overlay.Code(h); ok {
			return code, nil
		}
	}
	return v.state.Code(h)
}
