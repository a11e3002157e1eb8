// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"encoding/binary"
	"fmt"

	"glimpse/chain"
)

// wellFormed reports whether a key has the length of its space. Everything
// that takes keys apart relies on it; only Check meets keys that are not.
func wellFormed(key []byte) bool {
	if len(key) == 0 {
		return false
	}
	switch key[0] {
	case spaceSlot, spaceAccount, spaceWipe:
		return len(key) == stemSize(key[0])+numberSize
	case spaceBlock, spaceDigest, spaceJournal, spaceReceipt:
		return len(key) == blockKeySize
	case spaceCode, spaceHash:
		return len(key) == hashKeySize
	case spaceTx:
		return len(key) == txKeySize
	case spaceOrigin:
		return len(key) == accountStem || len(key) == slotStem
	case spaceMeta, spaceSide:
		return true
	}
	return false
}

// formatKey writes a key for people: what it is of, in words.
func formatKey(key []byte) string {
	if !wellFormed(key) {
		return fmt.Sprintf("%q", key)
	}
	switch key[0] {
	case spaceSlot:
		return fmt.Sprintf("slot %s of %s at %d", slotOf(key), addressOf(key), versionOf(key))
	case spaceAccount:
		return fmt.Sprintf("account %s at %d", addressOf(key), versionOf(key))
	case spaceWipe:
		return fmt.Sprintf("wipe of %s at %d", addressOf(key), versionOf(key))
	case spaceBlock:
		return fmt.Sprintf("block %d", numberOf(key))
	case spaceDigest:
		return fmt.Sprintf("digest %d", numberOf(key))
	case spaceJournal:
		return fmt.Sprintf("journal %d", numberOf(key))
	case spaceReceipt:
		return fmt.Sprintf("receipts %d", numberOf(key))
	case spaceCode:
		return fmt.Sprintf("code %s", chain.Hash(key[1:]))
	case spaceHash:
		return fmt.Sprintf("hash %s", chain.Hash(key[1:]))
	case spaceTx:
		return fmt.Sprintf("transactions %#x", key[1:])
	case spaceOrigin:
		if len(key) == slotStem {
			return fmt.Sprintf("slot %s of %s at the first block", slotOf(key), addressOf(key))
		}
		return fmt.Sprintf("account %s at the first block", addressOf(key))
	case spaceMeta:
		return fmt.Sprintf("meta %q", key[1:])
	}
	return fmt.Sprintf("side %x", key[1:])
}

// numberOf returns the block of a well-formed block, digest, journal or receipts
// key.
func numberOf(key []byte) chain.Number {
	return chain.Number(binary.BigEndian.Uint64(key[1:]))
}
