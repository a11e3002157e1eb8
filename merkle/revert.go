// SPDX-License-Identifier: Apache-2.0

package merkle

import (
	"fmt"

	"glimpse/chain"
)

// revertPage is how many slots are listed at a time.
const revertPage = 4096

// Revert returns the Diff that leads back to a block from a descendant of it:
// unwound are the Diffs of all blocks between the two, in any order, and view
// and flat are the state of the block to go back to. Applied to the
// descendant's tries it gives that block's state root and nodes.
//
// The Diff lists values for every account and slot that was changed between,
// also where they were put back, and no bytecode.
func Revert(unwound []*chain.Diff, view chain.View, flat Flat) (*chain.Diff, error) {
	touched := make(map[chain.Address]*touch)
	for _, d := range unwound {
		for i := range d.Accounts {
			note(touched, &d.Accounts[i])
		}
	}
	back := new(chain.Diff)
	for addr, t := range touched {
		change, err := t.revert(addr, view, flat)
		if err != nil {
			return nil, fmt.Errorf("revert account %s: %w", addr, err)
		}
		back.Accounts = append(back.Accounts, change)
	}
	back.Sort()
	return back, nil
}

// A touch is what the unwound blocks did to one account.
type touch struct {
	changed, wiped bool
	slots          map[chain.Slot]struct{}
}

func note(touched map[chain.Address]*touch, d *chain.AccountDiff) {
	t := touched[d.Address]
	if t == nil {
		t = &touch{slots: make(map[chain.Slot]struct{})}
		touched[d.Address] = t
	}
	t.changed = t.changed || d.Changed
	t.wiped = t.wiped || d.Wiped
	for _, s := range d.Slots {
		t.slots[s.Slot] = struct{}{}
	}
}

func (t *touch) revert(addr chain.Address, view chain.View, flat Flat) (chain.AccountDiff, error) {
	account, err := view.Account(addr)
	if err != nil {
		return chain.AccountDiff{}, err
	}
	back := chain.AccountDiff{Address: addr, Changed: t.changed}
	if t.changed {
		back.Account = account
	}
	switch {
	case !account.Exists:
		back.Wiped = true // it came into being later, with all its storage
	case t.wiped:
		back.Wiped = true
		back.Slots, err = allSlots(addr, flat)
	default:
		back.Slots, err = t.slotsAt(addr, view)
	}
	return back, err
}

// slotsAt reads only the slots that were changed: the others are as they were.
func (t *touch) slotsAt(addr chain.Address, view chain.View) (slots []chain.SlotDiff, err error) {
	for slot := range t.slots {
		value, err := view.Slot(addr, slot)
		if err != nil {
			return nil, err
		}
		slots = append(slots, chain.SlotDiff{Slot: slot, Value: value})
	}
	return slots, nil
}

// allSlots lists what a wipe voided: no Diff says what that was.
func allSlots(addr chain.Address, flat Flat) (slots []chain.SlotDiff, err error) {
	var after *chain.Slot
	for more := true; more; {
		var page []chain.SlotDiff
		if page, more, err = flat.Slots(addr, after, revertPage); err != nil {
			return nil, err
		}
		slots = append(slots, page...)
		if len(slots) > 0 {
			after = &slots[len(slots)-1].Slot
		}
	}
	return slots, nil
}
