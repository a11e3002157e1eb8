// SPDX-License-Identifier: Apache-2.0

package evm

import (
	"maps"

	"glimpse/chain"
)

// add puts later changes on top of c, which keeps what was before the earlier
// ones. It takes over later, which must not be used any more.
func (c changes) add(later changes) {
	for addr, next := range later {
		first := c[addr]
		if first == nil {
			c[addr] = next
			continue
		}
		first.destroyed = first.destroyed || next.destroyed
		if first.slots == nil {
			first.slots = next.slots
			continue
		}
		for slot, before := range next.slots {
			if _, noted := first.slots[slot]; !noted {
				first.slots[slot] = before
			}
		}
	}
}

// clone returns a copy that may be added to and taken over.
func (c changes) clone() changes {
	copied := make(changes, len(c))
	for addr, ch := range c {
		other := *ch
		other.slots = maps.Clone(ch.slots)
		copied[addr] = &other
	}
	return copied
}

// diff compares what the changes note from before with what the state holds
// now and leaves out what is equal. It may read the View behind the state, so
// the reader's error must be looked at afterwards.
func (r *recorder) diff(since changes) *chain.Diff {
	diff := new(chain.Diff)
	codes := make(map[chain.Hash]bool)
	for addr, c := range since {
		account := r.account(addr)
		change := chain.AccountDiff{
			Address: addr,
			Changed: account != c.before,
			Wiped:   c.destroyed && c.before.Exists,
		}
		if change.Changed {
			change.Account = account
		}
		change.Slots = r.slotDiffs(addr, c, change.Wiped)
		if !change.Changed && !change.Wiped && len(change.Slots) == 0 {
			continue
		}
		diff.Accounts = append(diff.Accounts, change)
		if hash := account.CodeHash; hash != (chain.Hash{}) && hash != c.before.CodeHash && !codes[hash] {
			codes[hash] = true
			diff.Codes = append(diff.Codes, chain.Code{Hash: hash, Bytes: r.GetCode(addr)})
		}
	}
	diff.Sort()
	return diff
}

// slotDiffs compares with zero where a wipe lies between before and now.
func (r *recorder) slotDiffs(addr chain.Address, c *change, wiped bool) (slots []chain.SlotDiff) {
	for slot, before := range c.slots {
		if wiped {
			before = chain.Value{}
		}
		if now := r.GetState(addr, slot); now != before {
			slots = append(slots, chain.SlotDiff{Slot: slot, Value: now})
		}
	}
	return slots
}
