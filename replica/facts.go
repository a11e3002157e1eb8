// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"errors"
	"fmt"
	"slices"

	"glimpse/chain"
)

// factsAsDiff puts Facts into the form of a Diff: it has one order, and a known
// absence is a value in it too. What Facts say twice is said once; what they
// contradict themselves in is refused.
func factsAsDiff(f *chain.Facts) (*chain.Diff, error) {
	if f == nil {
		return nil, errors.New("there are no facts")
	}
	accounts := make(map[chain.Address]*chain.AccountDiff)
	at := func(addr chain.Address) *chain.AccountDiff {
		if accounts[addr] == nil {
			accounts[addr] = &chain.AccountDiff{Address: addr}
		}
		return accounts[addr]
	}
	for _, fact := range f.Accounts {
		a := at(fact.Address)
		if a.Changed && a.Account != fact.Account {
			return nil, fmt.Errorf("two facts about account %s", fact.Address)
		}
		a.Changed, a.Account = true, fact.Account
	}
	for _, fact := range f.Slots {
		a := at(fact.Address)
		a.Slots = append(a.Slots, chain.SlotDiff{Slot: fact.Slot, Value: fact.Value})
	}
	d := &chain.Diff{Codes: slices.Clone(f.Codes)}
	for _, a := range accounts {
		d.Accounts = append(d.Accounts, *a)
	}
	d.Sort()
	d.Codes = slices.CompactFunc(d.Codes, func(a, b chain.Code) bool { return a.Hash == b.Hash })
	for i := range d.Accounts {
		a := &d.Accounts[i]
		a.Slots = slices.Compact(a.Slots)
		for k := 1; k < len(a.Slots); k++ {
			if a.Slots[k-1].Slot == a.Slots[k].Slot {
				return nil, fmt.Errorf("two facts about slot %s of %s", a.Slots[k].Slot, a.Address)
			}
		}
	}
	return d, nil
}

// factsOf is the way back. Facts know no wipes.
func factsOf(d *chain.Diff) (*chain.Facts, error) {
	f := &chain.Facts{Codes: d.Codes}
	for i := range d.Accounts {
		a := &d.Accounts[i]
		if a.Wiped {
			return nil, fmt.Errorf("facts with a wipe of %s", a.Address)
		}
		if a.Changed {
			f.Accounts = append(f.Accounts, chain.AccountFact{Address: a.Address, Account: a.Account})
		}
		for _, s := range a.Slots {
			f.Slots = append(f.Slots, chain.SlotFact{Address: a.Address, Slot: s.Slot, Value: s.Value})
		}
	}
	return f, nil
}
