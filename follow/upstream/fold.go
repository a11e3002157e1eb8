// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"fmt"

	"glimpse/chain"
)

// A fold collects what happened to a state, one thing after the other, and
// compares the end with the beginning.
type fold struct {
	base     chain.View
	accounts map[chain.Address]*folded
	codes    map[chain.Hash][]byte
}

// folded is one account: what it was in the base, and what it is so far.
type folded struct {
	before, now chain.Account
	wiped       bool
	slots       map[chain.Slot]chain.Value // as they are so far, of those that were touched
}

func newFold(base chain.View) *fold {
	return &fold{base: base, accounts: make(map[chain.Address]*folded), codes: make(map[chain.Hash][]byte)}
}

func (f *fold) account(addr chain.Address) (*folded, error) {
	if a := f.accounts[addr]; a != nil {
		return a, nil
	}
	before, err := f.base.Account(addr)
	if err != nil {
		return nil, fmt.Errorf("account %s before the block: %w", addr, err)
	}
	a := &folded{before: before, now: before, slots: make(map[chain.Slot]chain.Value)}
	f.accounts[addr] = a
	return a, nil
}

// slot returns the value so far.
func (f *fold) slot(addr chain.Address, slot chain.Slot) (chain.Value, error) {
	a, err := f.account(addr)
	if err != nil {
		return chain.Value{}, err
	}
	if value, touched := a.slots[slot]; touched || a.wiped {
		return value, nil
	}
	value, err := f.base.Slot(addr, slot)
	if err != nil {
		return chain.Value{}, fmt.Errorf("slot %s of %s before the block: %w", slot, addr, err)
	}
	return value, nil
}

// setCode gives an account code, or none.
func (f *fold) setCode(a *folded, code []byte) {
	a.now.CodeHash = hashOf(code)
	if len(code) > 0 {
		f.codes[a.now.CodeHash] = code
	}
}

// destroy voids the account and all of its storage.
func (a *folded) destroy() {
	a.now = chain.Account{}
	a.wiped = true
	clear(a.slots)
}

// diff is what ended up different. A changed account without nonce, balance and
// code does not exist (EIP-161).
func (f *fold) diff() (*chain.Diff, error) {
	diff := new(chain.Diff)
	codes := make(map[chain.Hash]bool)
	for addr, a := range f.accounts {
		if a.now != a.before {
			a.now.Exists = a.now.Nonce != 0 || !a.now.Balance.IsZero() || a.now.CodeHash != (chain.Hash{})
		}
		change := chain.AccountDiff{Address: addr, Changed: a.now != a.before, Wiped: a.wiped && a.before.Exists}
		if change.Changed {
			change.Account = a.now
		}
		var err error
		if change.Slots, err = f.slotDiffs(addr, a); err != nil {
			return nil, err
		}
		if !change.Changed && !change.Wiped && len(change.Slots) == 0 {
			continue
		}
		diff.Accounts = append(diff.Accounts, change)
		hash := a.now.CodeHash
		if hash == (chain.Hash{}) || hash == a.before.CodeHash || codes[hash] {
			continue
		}
		code, ok := f.codes[hash]
		if !ok {
			return nil, fmt.Errorf("code %s of account %s is not told", hash, addr)
		}
		codes[hash] = true
		diff.Codes = append(diff.Codes, chain.Code{Hash: hash, Bytes: code})
	}
	diff.Sort()
	return diff, nil
}

// slotDiffs compares with zero where a wipe lies between before and now.
func (f *fold) slotDiffs(addr chain.Address, a *folded) (slots []chain.SlotDiff, err error) {
	for slot, now := range a.slots {
		var before chain.Value
		if !a.wiped {
			if before, err = f.base.Slot(addr, slot); err != nil {
				return nil, fmt.Errorf("slot %s of %s before the block: %w", slot, addr, err)
			}
		}
		if now != before {
			slots = append(slots, chain.SlotDiff{Slot: slot, Value: now})
		}
	}
	return slots, nil
}
