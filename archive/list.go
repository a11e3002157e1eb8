// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"

	"glimpse/chain"
)

// eachNewest calls use with every key under prefix in its version that is in
// force at n, absent or not, until use returns false. It begins after the stem
// after, or at the first where that is nil. The slices are valid during the
// call only.
func (r *Reader) eachNewest(prefix, after []byte, n chain.Number, use func(key, value []byte) (more bool, err error)) (err error) {
	lower := prefix
	if after != nil {
		lower = appendPast(nil, after)
	}
	iter, err := r.scan(lower, appendPast(nil, prefix))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, storeError(iter.Close())) }()
	var seek []byte
	for ok := iter.First(); ok; {
		key := iter.Key()
		if !wellFormed(key) {
			return corrupt(key, "malformed")
		}
		if versionOf(key) > n {
			seek = appendVersion(append(seek[:0], key[:len(key)-numberSize]...), n)
			ok = iter.SeekGE(seek)
			continue
		}
		value, err := iter.ValueAndErr()
		if err != nil {
			return storeError(err)
		}
		if more, err := use(key, value); err != nil || !more {
			return err
		}
		ok = iter.NextPrefix()
	}
	return nil
}

// Slots returns up to limit non-zero slots of an account at block n, in order
// of their keys, beginning after the slot after, or at the first where that is
// nil. More says that there are others after the last. The error is a
// *chain.Miss where n has no state here.
//
// In a sparse store it wraps chain.ErrUnknown unless the account was wiped since
// the first block, or has code and is known not to have existed then: only so are
// all its slots here.
func (r *Reader) Slots(a chain.Address, n chain.Number, after *chain.Slot, limit int) (slots []chain.SlotDiff, more bool, err error) {
	if err := r.within(n); err != nil {
		return nil, false, err
	}
	var begin []byte
	if after != nil {
		begin = appendSlotStem(nil, a, *after)
	}
	wiped, err := r.lastWipe(a, n)
	if err == nil && r.heads.sparse {
		err = r.knowsAllSlots(a, n, wiped)
	}
	if err == nil {
		err = r.eachNewest(appendAccountStem(nil, spaceSlot, a), begin, n, func(key, value []byte) (bool, error) {
			v, err := decodeSlotValue(value)
			if err != nil || v == (chain.Value{}) || versionOf(key) < wiped {
				return true, err
			}
			if more = len(slots) >= limit; !more {
				slots = append(slots, chain.SlotDiff{Slot: slotOf(key), Value: v})
			}
			return !more, nil
		})
	}
	if err != nil {
		return nil, false, fmt.Errorf("list slots of %s at %d: %w", a, n, err)
	}
	return slots, more, nil
}

// lastWipe returns the newest wipe of an address at or before n, or zero: no
// version is before block zero, so none is void.
func (r *Reader) lastWipe(a chain.Address, n chain.Number) (block chain.Number, err error) {
	if !r.db.wiped.mayHold(a) {
		return 0, nil
	}
	err = r.read(func(c *cursor) error {
		block, _, err = c.lastWipe(a, n)
		return err
	})
	return block, err
}

// An AccountEntry is one account in a listing.
type AccountEntry struct {
	Address chain.Address
	Account chain.Account
}

// Accounts returns up to limit accounts that exist at block n, in order of
// their addresses, beginning after the address after, or at the first where
// that is nil. More says that there are others after the last. The error is a
// *chain.Miss where n has no state here, and wraps chain.ErrUnknown in a sparse
// store: which accounts there were at its first block nobody can tell.
func (r *Reader) Accounts(n chain.Number, after *chain.Address, limit int) (accounts []AccountEntry, more bool, err error) {
	if err := r.within(n); err != nil {
		return nil, false, err
	}
	var begin []byte
	if after != nil {
		begin = appendAccountStem(nil, spaceAccount, *after)
	}
	if r.heads.sparse {
		return nil, false, fmt.Errorf("list accounts at %d: %w", n, chain.ErrUnknown)
	}
	err = r.eachNewest([]byte{spaceAccount}, begin, n, func(key, value []byte) (bool, error) {
		account, err := decodeAccount(value)
		if err != nil || !account.Exists {
			return true, err
		}
		if more = len(accounts) >= limit; !more {
			accounts = append(accounts, AccountEntry{addressOf(key), account})
		}
		return !more, nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("list accounts at %d: %w", n, err)
	}
	return accounts, more, nil
}
