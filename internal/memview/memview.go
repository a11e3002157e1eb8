// SPDX-License-Identifier: Apache-2.0

// Package memview keeps the state of one block in maps, for tests. It is the
// simplest thing that obeys chain.View, and so an oracle for what a Diff means.
package memview

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"glimpse/chain"
)

// A State is the state of one block. Reads may run concurrently; Apply must not
// run beside anything else.
type State struct {
	accounts map[chain.Address]chain.Account
	storage  map[chain.Address]map[chain.Slot]chain.Value // without zeros
	codes    map[chain.Hash][]byte
}

// New returns a state without accounts.
func New() *State {
	return &State{
		accounts: make(map[chain.Address]chain.Account),
		storage:  make(map[chain.Address]map[chain.Slot]chain.Value),
		codes:    make(map[chain.Hash][]byte),
	}
}

// Clone returns a copy that shares nothing that Apply modifies.
func (s *State) Clone() *State {
	c := &State{
		accounts: maps.Clone(s.accounts),
		storage:  make(map[chain.Address]map[chain.Slot]chain.Value, len(s.storage)),
		codes:    maps.Clone(s.codes),
	}
	for addr, slots := range s.storage {
		c.storage[addr] = maps.Clone(slots)
	}
	return c
}

// Apply changes the state as d says. A Diff that contradicts the state or its
// own rules, such as one that changes nothing, is an error.
func (s *State) Apply(d *chain.Diff) error {
	for _, code := range d.Codes {
		s.codes[code.Hash] = code.Bytes
	}
	for i := range d.Accounts {
		if err := s.applyAccount(&d.Accounts[i]); err != nil {
			return fmt.Errorf("account %s: %w", d.Accounts[i].Address, err)
		}
	}
	return nil
}

func (s *State) applyAccount(a *chain.AccountDiff) error {
	before, existed := s.accounts[a.Address]
	if a.Wiped {
		if !existed {
			return fmt.Errorf("wiped, but did not exist")
		}
		delete(s.storage, a.Address)
	}
	switch {
	case !a.Changed:
		if !existed {
			return fmt.Errorf("slots of an account that does not exist")
		}
		if !a.Wiped && len(a.Slots) == 0 {
			return fmt.Errorf("listed without a change")
		}
	case a.Account == before:
		return fmt.Errorf("changed to what it was: %+v", before)
	case a.Account.Exists:
		if _, ok := s.codes[a.Account.CodeHash]; !ok && a.Account.CodeHash != (chain.Hash{}) {
			return fmt.Errorf("code %s is not known", a.Account.CodeHash)
		}
		s.accounts[a.Address] = a.Account
	default:
		if len(s.storage[a.Address]) > 0 {
			return fmt.Errorf("gone, but its storage is not wiped")
		}
		delete(s.accounts, a.Address)
	}
	return s.applySlots(a)
}

func (s *State) applySlots(a *chain.AccountDiff) error {
	for _, change := range a.Slots {
		slots := s.storage[a.Address]
		if slots[change.Slot] == change.Value {
			return fmt.Errorf("slot %s set to what it was: %s", change.Slot, change.Value)
		}
		if change.Value == (chain.Value{}) {
			delete(slots, change.Slot)
			continue
		}
		if slots == nil {
			slots = make(map[chain.Slot]chain.Value)
			s.storage[a.Address] = slots
		}
		slots[change.Slot] = change.Value
	}
	if len(s.storage[a.Address]) == 0 {
		delete(s.storage, a.Address)
	}
	return nil
}

// Account implements chain.View.
func (s *State) Account(addr chain.Address) (chain.Account, error) {
	return s.accounts[addr], nil
}

// Slot implements chain.View.
func (s *State) Slot(addr chain.Address, slot chain.Slot) (chain.Value, error) {
	return s.storage[addr][slot], nil
}

// Code implements chain.View.
func (s *State) Code(hash chain.Hash) ([]byte, error) {
	if hash == (chain.Hash{}) {
		return nil, nil
	}
	code, ok := s.codes[hash]
	if !ok {
		return nil, fmt.Errorf("no account has code %s", hash)
	}
	return code, nil
}

// Diff returns the whole state as the Diff from nothing to it.
func (s *State) Diff() *chain.Diff {
	d := new(chain.Diff)
	for addr, account := range s.accounts {
		slots, _, _ := s.Slots(addr, nil, len(s.storage[addr])) // never fails
		d.Accounts = append(d.Accounts, chain.AccountDiff{Address: addr, Changed: true, Account: account, Slots: slots})
	}
	for hash, code := range s.codes {
		d.Codes = append(d.Codes, chain.Code{Hash: hash, Bytes: code})
	}
	d.Sort()
	return d
}

// Accounts lists at most limit existing accounts in address order, those that
// come after the given one, or the first ones for nil.
func (s *State) Accounts(after *chain.Address, limit int) (accounts []chain.AccountDiff, more bool, err error) {
	addrs := slices.SortedFunc(maps.Keys(s.accounts), func(a, b chain.Address) int { return bytes.Compare(a[:], b[:]) })
	for _, addr := range addrs {
		if after != nil && bytes.Compare(addr[:], after[:]) <= 0 {
			continue
		}
		if len(accounts) == limit {
			return accounts, true, nil
		}
		accounts = append(accounts, chain.AccountDiff{Address: addr, Changed: true, Account: s.accounts[addr]})
	}
	return accounts, false, nil
}

// Slots lists at most limit slots of an account that are not zero, in key
// order, those that come after the given one, or the first ones for nil.
func (s *State) Slots(addr chain.Address, after *chain.Slot, limit int) (slots []chain.SlotDiff, more bool, err error) {
	all := s.storage[addr]
	keys := slices.SortedFunc(maps.Keys(all), func(a, b chain.Slot) int { return bytes.Compare(a[:], b[:]) })
	for _, slot := range keys {
		if after != nil && bytes.Compare(slot[:], after[:]) <= 0 {
			continue
		}
		if len(slots) == limit {
			return slots, true, nil
		}
		slots = append(slots, chain.SlotDiff{Slot: slot, Value: all[slot]})
	}
	return slots, false, nil
}
