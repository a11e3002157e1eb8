// SPDX-License-Identifier: Apache-2.0

package ethapi_test

import (
	"fmt"

	"glimpse/chain"
)

// What the fake has of histories: slot and code change in each block, the listing
// is three slots, and the diff of block n changes account n.
var fakeSlots = []chain.SlotDiff{
	{Slot: chain.Slot{31: 1}, Value: chain.Value{31: 0x11}},
	{Slot: chain.Slot{31: 2}, Value: chain.Value{31: 0x12}},
	{Slot: chain.Slot{31: 3}, Value: chain.Value{31: 0x13}},
}

func (f *fake) Stamp() []byte {
	if f.pending == nil {
		return fmt.Appendf(nil, "%d:stamp;pending=latest", f.top())
	}
	return fmt.Appendf(nil, "%d:stamp;pending=%d.%d", f.top(), f.pending.Header.Number, f.pending.Index)
}

func (f *fake) Safe() (chain.Ref, bool) { return chain.Ref{}, false }
func (f *fake) Finalized() (chain.Ref, bool) {
	return chain.Ref{Number: 3, Hash: chain.Hash{31: 3}}, true
}

func (f *fake) Hash(n chain.Number) (chain.Hash, error) {
	return chain.Hash{31: byte(n)}, f.fail("Hash")
}

func (f *fake) stateOf(n chain.Number) error {
	if n < 2 {
		return &chain.Miss{Reason: chain.Pruned, Oldest: 2, Latest: 5}
	}
	return nil
}

func (f *fake) Diff(n chain.Number) (*chain.Diff, error) {
	if err := f.fail("Diff"); err != nil {
		return nil, err
	}
	d := &chain.Diff{Accounts: []chain.AccountDiff{
		{Address: chain.Address{19: byte(n)}, Changed: true, Account: chain.Account{Exists: true, Nonce: 7, CodeHash: code.Hash}},
		{Address: chain.Address{19: 0xaa}, Changed: true, Wiped: true},
		{Address: chain.Address{19: 0xbb}, Slots: fakeSlots[:1]},
	}, Codes: []chain.Code{code}}
	return d, f.stateOf(n)
}

func (f *fake) PendingDiff() (*chain.Diff, bool) {
	return &chain.Diff{Accounts: []chain.AccountDiff{{Address: chain.Address{19: 0xcc}, Slots: []chain.SlotDiff{{}}}}}, f.pending != nil
}

func (f *fake) SlotHistory(_ chain.Address, k chain.Slot, from, to chain.Number, limit int) (versions []chain.SlotVersion, more bool, err error) {
	if err := f.fail("SlotHistory"); err != nil {
		return nil, false, err
	}
	for n := from; n <= to; n++ {
		if len(versions) == limit {
			return versions, true, f.stateOf(from)
		}
		k[0] = byte(n)
		versions = append(versions, chain.SlotVersion{Block: n, Value: k})
	}
	return versions, false, f.stateOf(from)
}

func (f *fake) CodeHistory(_ chain.Address, from, to chain.Number, limit int) (versions []chain.CodeVersion, more bool, err error) {
	if err := f.fail("CodeHistory"); err != nil {
		return nil, false, err
	}
	for n := from; n <= to; n++ {
		if len(versions) == limit {
			return versions, true, f.stateOf(from)
		}
		v := chain.CodeVersion{Block: n}
		if n%2 == 1 {
			v.Hash = code.Hash
		}
		versions = append(versions, v)
	}
	return versions, false, f.stateOf(from)
}

func (f *fake) Slots(sel chain.Selector, _ chain.Address, after *chain.Slot, limit int) (slots []chain.SlotDiff, more bool, err error) {
	if err := f.fail("Slots"); err != nil {
		return nil, false, err
	}
	n, err := f.Locate(sel)
	if err != nil {
		return nil, false, err
	}
	for _, s := range fakeSlots {
		if after != nil && s.Slot.Cmp(*after) <= 0 {
			continue
		}
		if len(slots) == limit {
			return slots, true, f.stateOf(n)
		}
		slots = append(slots, s)
	}
	return slots, false, f.stateOf(n)
}
