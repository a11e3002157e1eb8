// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"encoding/binary"

	"glimpse/chain"
)

// The first byte of a key says what it holds.
const (
	spaceAccount = 'a'
	spaceBlock   = 'b'
	spaceCode    = 'c'
	spaceDigest  = 'd'
	spaceHash    = 'h'
	spaceJournal = 'j'
	spaceMeta    = 'm'
	spaceOrigin  = 'o'
	spaceReceipt = 'r'
	spaceSlot    = 's'
	spaceSide    = 't'
	spaceWipe    = 'w'
	spaceTx      = 'x'
)

const (
	numberSize   = 8
	addressSize  = len(chain.Address{})
	hashSize     = len(chain.Hash{})
	accountStem  = 1 + addressSize
	slotStem     = accountStem + hashSize
	blockKeySize = 1 + numberSize
	hashKeySize  = 1 + hashSize
)

// stemSize returns how long a key is without its version, zero in the spaces
// that have no versions.
func stemSize(space byte) int {
	switch space {
	case spaceSlot:
		return slotStem
	case spaceAccount, spaceWipe:
		return accountStem
	}
	return 0
}

func appendNumber(dst []byte, n chain.Number) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(n))
}

// appendVersion complements the number, which puts the newest version first.
func appendVersion(dst []byte, n chain.Number) []byte {
	return binary.BigEndian.AppendUint64(dst, ^uint64(n))
}

// versionOf returns the block of a whole versioned key.
func versionOf(key []byte) chain.Number {
	return chain.Number(^binary.BigEndian.Uint64(key[len(key)-numberSize:]))
}

func appendSlotStem(dst []byte, a chain.Address, s chain.Slot) []byte {
	return append(append(append(dst, spaceSlot), a[:]...), s[:]...)
}

func appendSlotKey(dst []byte, a chain.Address, s chain.Slot, n chain.Number) []byte {
	return appendVersion(appendSlotStem(dst, a, s), n)
}

func appendAccountStem(dst []byte, space byte, a chain.Address) []byte {
	return append(append(dst, space), a[:]...)
}

func appendAccountKey(dst []byte, a chain.Address, n chain.Number) []byte {
	return appendVersion(appendAccountStem(dst, spaceAccount, a), n)
}

func appendWipeKey(dst []byte, a chain.Address, n chain.Number) []byte {
	return appendVersion(appendAccountStem(dst, spaceWipe, a), n)
}

func appendOriginSlotKey(dst []byte, a chain.Address, s chain.Slot) []byte {
	return append(appendAccountStem(dst, spaceOrigin, a), s[:]...)
}

func appendHashKey(dst []byte, space byte, h chain.Hash) []byte {
	return append(append(dst, space), h[:]...)
}

func appendNumberKey(dst []byte, space byte, n chain.Number) []byte {
	return appendNumber(append(dst, space), n)
}

func appendSideKey(dst, key []byte) []byte {
	return append(append(dst, spaceSide), key...)
}

// appendPast appends the smallest key that is larger than every key beginning
// with prefix, which must not be all 0xff: no space is 0xff.
func appendPast(dst, prefix []byte) []byte {
	last := len(prefix) - 1
	for last >= 0 && prefix[last] == 0xff {
		last--
	}
	if last < 0 {
		return append(append(dst, prefix...), 0xff)
	}
	dst = append(dst, prefix[:last+1]...)
	dst[len(dst)-1]++
	return dst
}

// addressOf and slotOf return the parts of a key whose length was checked.
func addressOf(key []byte) chain.Address {
	return chain.Address(key[1:accountStem])
}

func slotOf(key []byte) chain.Slot {
	return chain.Slot(key[accountStem:slotStem])
}
