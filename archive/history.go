// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"glimpse/chain"
)

// SlotHistory returns the values that a slot had from block from to block to,
// oldest first. The first is the value in force at from, with from as its
// block; each other one differs from the one before it. A wipe is a change to
// zero. At most limit are returned, at least one; more says that there are
// later ones, which a call from the last block returned continues with, that
// value again first.
//
// The error is a *chain.Miss where a block of the range has no state here. In a
// sparse store it wraps chain.ErrUnknown where the value at from is not known;
// all later ones are.
func (r *Reader) SlotHistory(a chain.Address, s chain.Slot, from, to chain.Number, limit int) (versions []chain.SlotVersion, more bool, err error) {
	v, err := r.historyView(from, to)
	if err != nil {
		return nil, false, err
	}
	value, err := v.Slot(a, s)
	if err != nil {
		return nil, false, err
	}
	versions = []chain.SlotVersion{{Block: from, Value: value}}
	h, err := r.slotChanges(a, s, from, to)
	if err != nil {
		return nil, false, fmt.Errorf("read history of slot %s of %s: %w", s, a, err)
	}
	for h.next() {
		if h.value == versions[len(versions)-1].Value {
			continue
		}
		if more = len(versions) >= limit; more {
			break
		}
		versions = append(versions, chain.SlotVersion{Block: h.block, Value: h.value})
	}
	if err := h.close(); err != nil {
		return nil, false, fmt.Errorf("read history of slot %s of %s: %w", s, a, err)
	}
	return versions, more, nil
}

// CodeHistory returns the codes that an account had from block from to block
// to, in the manner of SlotHistory. Its work is in proportion to the changes of
// the account, not only of its code.
func (r *Reader) CodeHistory(a chain.Address, from, to chain.Number, limit int) (versions []chain.CodeVersion, more bool, err error) {
	v, err := r.historyView(from, to)
	if err != nil {
		return nil, false, err
	}
	account, err := v.Account(a)
	if err != nil {
		return nil, false, err
	}
	versions = []chain.CodeVersion{{Block: from, Hash: account.CodeHash}}
	iter, err := r.versions(appendAccountStem(nil, spaceAccount, a), from, to)
	if err != nil {
		return nil, false, fmt.Errorf("read history of %s: %w", a, err)
	}
	for iter.next() {
		account, err := decodeAccount(iter.value)
		if err != nil {
			iter.fail(err)
			break
		}
		if account.CodeHash == versions[len(versions)-1].Hash {
			continue
		}
		if more = len(versions) >= limit; more {
			break
		}
		versions = append(versions, chain.CodeVersion{Block: iter.block, Hash: account.CodeHash})
	}
	if err := iter.close(); err != nil {
		return nil, false, fmt.Errorf("read history of %s: %w", a, err)
	}
	return versions, more, nil
}

func (r *Reader) historyView(from, to chain.Number) (View, error) {
	if from > to {
		return View{}, fmt.Errorf("history from block %d to %d: the range ends before it begins", from, to)
	}
	if err := r.within(to); err != nil {
		return View{}, err
	}
	return r.At(from)
}

// A versionIter goes through the versions of one key, oldest first.
type versionIter struct {
	iter  *pebble.Iterator
	moved bool
	err   error

	block chain.Number
	value []byte // valid until the next step
}

// versions returns the versions of a stem after block from, up to block to.
func (r *Reader) versions(stem []byte, from, to chain.Number) (*versionIter, error) {
	iter, err := r.scan(appendVersion(stem[:len(stem):len(stem)], to), appendVersion(stem[:len(stem):len(stem)], from))
	if err != nil {
		return nil, err
	}
	return &versionIter{iter: iter}, nil
}

func (i *versionIter) next() bool {
	step := i.iter.Prev
	if !i.moved {
		step, i.moved = i.iter.Last, true
	}
	if i.err != nil || !step() {
		return false
	}
	i.block = versionOf(i.iter.Key())
	i.value, i.err = i.iter.ValueAndErr()
	return i.err == nil
}

func (i *versionIter) fail(err error) { i.err = errors.Join(i.err, err) }

func (i *versionIter) close() error {
	return storeError(errors.Join(i.err, i.iter.Close()))
}

// A slotChanges merges the versions of a slot with the wipes of its account.
// A write in the block of a wipe comes after it (A3), so that wipe is left out.
type slotChanges struct {
	writes, wipes       *versionIter
	haveWrite, haveWipe bool

	block chain.Number
	value chain.Value
}

func (r *Reader) slotChanges(a chain.Address, s chain.Slot, from, to chain.Number) (*slotChanges, error) {
	writes, err := r.versions(appendSlotStem(nil, a, s), from, to)
	if err != nil {
		return nil, err
	}
	wipes, err := r.versions(appendAccountStem(nil, spaceWipe, a), from, to)
	if err != nil {
		return nil, errors.Join(err, writes.close())
	}
	return &slotChanges{writes: writes, wipes: wipes, haveWrite: writes.next(), haveWipe: wipes.next()}, nil
}

func (c *slotChanges) next() bool {
	switch {
	case c.haveWrite && (!c.haveWipe || c.writes.block <= c.wipes.block):
		if c.haveWipe && c.wipes.block == c.writes.block {
			c.haveWipe = c.wipes.next()
		}
		value, err := decodeSlotValue(c.writes.value)
		if err != nil {
			c.writes.fail(err)
			return false
		}
		c.block, c.value = c.writes.block, value
		c.haveWrite = c.writes.next()
	case c.haveWipe:
		c.block, c.value = c.wipes.block, chain.Value{}
		c.haveWipe = c.wipes.next()
	default:
		return false
	}
	return true
}

func (c *slotChanges) close() error {
	return errors.Join(c.writes.close(), c.wipes.close())
}
