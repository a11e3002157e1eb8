// SPDX-License-Identifier: Apache-2.0

package archive

import "glimpse/chain"

// origin checks one fact about the first block. It is not in the digest: what
// was asked for is history, not content.
func (k *checker) origin(key, value []byte) error {
	k.report.Origins++
	if !k.heads.sparse {
		return corrupt(key, "want none in a store that begins with genesis")
	}
	if len(key) == slotStem {
		if _, err := decodeSlotValue(value); err != nil {
			return corrupt(key, "%w", err)
		}
		return nil
	}
	a, err := decodeAccount(value)
	if err != nil {
		return corrupt(key, "%w", err)
	}
	if a.CodeHash == (chain.Hash{}) {
		return nil
	}
	since, _, found, err := k.cursor.code(a.CodeHash)
	switch {
	case err != nil:
		return err
	case !found:
		return corrupt(key, "its code %s is missing", a.CodeHash)
	case since > k.heads.first:
		return corrupt(k.cursor.key, "is of block %d, want it of the first block %d, where an account has it", since, k.heads.first)
	}
	return nil
}

// void expects that a slot version that pruning settled in a sparse store is not
// one that a wipe has made void: the mark is still there to tell.
func (k *checker) void(key []byte) error {
	n, a := versionOf(key), addressOf(key)
	if !k.heads.sparse || n > k.heads.oldest || !k.r.db.wiped.mayHold(a) {
		return nil
	}
	wiped, found, err := k.cursor.lastWipe(a, k.heads.oldest)
	if err != nil {
		return err
	}
	if found && n < wiped {
		return corrupt(key, "is void since the wipe at %d, want no such version at or below the oldest block %d", wiped, k.heads.oldest)
	}
	return nil
}
