// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"

	"glimpse/archive"
	"glimpse/chain"
	"glimpse/follow/origin"
	"glimpse/head"
)

// A reading is how the archive is read: as it is, or with what it does not know
// read through from an upstream.
type reading interface {
	state(*archive.Reader) head.State
	view(*archive.Reader, chain.Number) (chain.View, error)
}

// asItIs reads an archive that knows everything.
type asItIs struct{}

func (asItIs) state(r *archive.Reader) head.State { return state{r} }

func (asItIs) view(r *archive.Reader, n chain.Number) (chain.View, error) {
	v, err := r.At(n)
	return v, err
}

// through reads an archive that knows what changed since its first block.
type through struct{ origin *origin.Origin }

func (t through) state(r *archive.Reader) head.State { return throughState{r, t.origin} }

func (t through) view(r *archive.Reader, n chain.Number) (chain.View, error) {
	base, err := r.At(n)
	if err != nil {
		return nil, err
	}
	return t.origin.View(base), nil
}

// throughState is state with what is not known read through.
type throughState struct {
	*archive.Reader
	origin *origin.Origin
}

var _ head.State = throughState{}

func (s throughState) Account(n chain.Number, a chain.Address) (chain.Account, error) {
	base, err := s.At(n)
	if err != nil {
		return chain.Account{}, err
	}
	account, err := base.Account(a)
	if errors.Is(err, chain.ErrUnknown) {
		return s.origin.Account(base, a)
	}
	return account, err
}

func (s throughState) Slot(n chain.Number, a chain.Address, k chain.Slot) (chain.Value, error) {
	base, err := s.At(n)
	if err != nil {
		return chain.Value{}, err
	}
	value, err := base.Slot(a, k)
	if errors.Is(err, chain.ErrUnknown) {
		return s.origin.Slot(base, a, k)
	}
	return value, err
}

// Code is kept with the account that has it.
func (s throughState) Code(h chain.Hash) ([]byte, error) { return state{s.Reader}.Code(h) }

// SlotHistory and CodeHistory have the first value read when it is not known; all
// later ones are here.
func (s throughState) SlotHistory(a chain.Address, k chain.Slot, from, to chain.Number, limit int) ([]chain.SlotVersion, bool, error) {
	versions, more, err := s.Reader.SlotHistory(a, k, from, to, limit)
	if errors.Is(err, chain.ErrUnknown) {
		if _, err := s.Slot(from, a, k); err != nil {
			return nil, false, err
		}
		return s.Reader.SlotHistory(a, k, from, to, limit)
	}
	return versions, more, err
}

func (s throughState) CodeHistory(a chain.Address, from, to chain.Number, limit int) ([]chain.CodeVersion, bool, error) {
	versions, more, err := s.Reader.CodeHistory(a, from, to, limit)
	if errors.Is(err, chain.ErrUnknown) {
		if _, err := s.Account(from, a); err != nil {
			return nil, false, err
		}
		return s.Reader.CodeHistory(a, from, to, limit)
	}
	return versions, more, err
}

// Slots asks whether the account existed at the first block where that decides
// whether all its slots are here.
func (s throughState) Slots(a chain.Address, n chain.Number, after *chain.Slot, limit int) ([]chain.SlotDiff, bool, error) {
	slots, more, err := s.Reader.Slots(a, n, after, limit)
	if errors.Is(err, chain.ErrUnknown) {
		if _, err := s.Account(n, a); err != nil {
			return nil, false, err
		}
		return s.Reader.Slots(a, n, after, limit)
	}
	return slots, more, err
}
