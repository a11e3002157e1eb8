// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"fmt"

	"glimpse/chain"
)

// version checks what slots, accounts and wipes have in common. Absent says
// that the version is a zero or an account that does not exist.
func (k *checker) version(key []byte, absent bool) error {
	n := versionOf(key)
	if stem := key[:len(key)-numberSize]; !bytes.Equal(stem, k.stem) {
		k.stem = append(k.stem[:0], stem...)
		k.settled = false
	}
	switch {
	case n > k.heads.head.Number:
		return corrupt(key, "is above the head %d", k.heads.head.Number)
	case n > k.heads.oldest:
		k.versions++
		return nil
	case absent && !k.heads.sparse:
		return corrupt(key, "holds nothing, want no such version at or below the oldest block %d", k.heads.oldest)
	case k.settled:
		return corrupt(key, "want one version at or below the oldest block %d, this is another", k.heads.oldest)
	}
	k.settled = true
	return nil
}

func (k *checker) slot(key, value []byte) error {
	k.report.Slots++
	v, err := decodeSlotValue(value)
	if err != nil {
		return corrupt(key, "%w", err)
	}
	if err := k.void(key); err != nil {
		return err
	}
	return k.version(key, v == (chain.Value{}))
}

func (k *checker) account(key, value []byte) error {
	k.report.Accounts++
	a, err := decodeAccount(value)
	if err != nil {
		return corrupt(key, "%w", err)
	}
	if a.CodeHash != (chain.Hash{}) {
		known, err := k.cursor.hasCode(a.CodeHash)
		if err != nil {
			return err
		}
		if !known {
			return corrupt(key, "its code %s is missing", a.CodeHash)
		}
	}
	return k.version(key, !a.Exists)
}

func (k *checker) wipe(key, value []byte) error {
	k.report.Wipes++
	if len(value) != 0 {
		return corrupt(key, "has a value of %d bytes, want none", len(value))
	}
	if versionOf(key) <= k.heads.oldest && !k.heads.sparse {
		return corrupt(key, "is at or below the oldest block %d, want it pruned", k.heads.oldest)
	}
	return k.version(key, false)
}

// entries looks up the version of every change that the journal of n lists.
func (k *checker) entries(n chain.Number, d *chain.Diff) error {
	for i := range d.Accounts {
		a := &d.Accounts[i]
		if a.Changed {
			k.cursor.key = appendAccountKey(k.cursor.key[:0], a.Address, n)
			if err := k.entry(appendAccount(nil, &a.Account)); err != nil {
				return err
			}
		}
		for _, s := range a.Slots {
			k.cursor.key = appendSlotKey(k.cursor.key[:0], a.Address, s.Slot, n)
			if err := k.entry(appendSlotValue(nil, s.Value)); err != nil {
				return err
			}
		}
		if a.Wiped {
			if err := k.wipeEntry(a.Address, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// entry expects a version at the cursor's key.
func (k *checker) entry(want []byte) error {
	got, found, err := k.cursor.get()
	if err != nil {
		return err
	}
	if !found {
		return corrupt(k.cursor.key, "missing, want the %x of its journal", want)
	}
	if !bytes.Equal(got, want) {
		return corrupt(k.cursor.key, "is %x, want the %x of its journal", got, want)
	}
	k.listed++
	return nil
}

// wipeEntry expects a mark, unless there was no storage to wipe.
func (k *checker) wipeEntry(a chain.Address, n chain.Number) error {
	k.cursor.key = appendWipeKey(k.cursor.key[:0], a, n)
	_, found, err := k.cursor.get()
	if err != nil {
		return err
	}
	if found {
		k.listed++
		return nil
	}
	if k.heads.sparse {
		return corrupt(k.cursor.key, "missing, want the mark that journal %d lists", n)
	}
	return k.r.eachNewest(appendAccountStem(nil, spaceSlot, a), nil, n-1, func(key, _ []byte) (bool, error) {
		return false, corrupt(key, "is before the wipe that journal %d lists, and the mark is missing", n)
	})
}

// findUnlisted names a version that no journal lists. It decodes a journal for
// each version, so it runs only where one is known to exist.
func (k *checker) findUnlisted() error {
	for _, space := range []byte{spaceAccount, spaceSlot, spaceWipe} {
		err := k.each([]byte{space}, []byte{space + 1}, func(key, _ []byte) error {
			n := versionOf(key)
			if n <= k.heads.oldest {
				return nil
			}
			d, _, err := k.cursor.bareDiff(n)
			if err != nil {
				return err
			}
			if !lists(d, key) {
				return corrupt(key, "is not in journal %d", n)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %d versions above the oldest block, want the %d that journals list",
		chain.ErrCorrupt, k.versions, k.listed)
}

// lists reports whether a journal says that the version at key was written.
func lists(d *chain.Diff, key []byte) bool {
	for i := range d.Accounts {
		a := &d.Accounts[i]
		if a.Address != addressOf(key) {
			continue
		}
		switch key[0] {
		case spaceAccount:
			return a.Changed
		case spaceWipe:
			return a.Wiped
		}
		for _, s := range a.Slots {
			if s.Slot == slotOf(key) {
				return true
			}
		}
	}
	return false
}
