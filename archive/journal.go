// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"fmt"

	"github.com/klauspost/compress/s2"

	"glimpse/chain"
)

// packedJournal is the first byte of a journal that is stored packed. That of a
// plain one is the version of the diff's encoding, which is another.
const packedJournal = 0xff

// maxPacked bounds what a packed journal may claim to hold.
const maxPacked = 256 << 20

// appendJournal appends a journal as it is stored beside its block: packed
// where that is shorter. Much of what a block changed is named in it, by address
// or as an argument of a call, so that the block's value is the dictionary.
func appendJournal(dst, journal, block []byte) []byte {
	dict := s2.MakeDict(block, nil)
	if dict == nil || len(journal) > maxPacked {
		return append(dst, journal...)
	}
	packed := dict.Encode(nil, journal)
	if 1+len(packed) >= len(journal) {
		return append(dst, journal...)
	}
	return append(append(dst, packedJournal), packed...)
}

func isPacked(stored []byte) bool { return len(stored) > 0 && stored[0] == packedJournal }

// unpackJournal reverses appendJournal for a journal that is packed.
func unpackJournal(stored, block []byte) ([]byte, error) {
	packed := stored[1:]
	if n, err := s2.DecodedLen(packed); err != nil || n > maxPacked {
		return nil, fmt.Errorf("%w: packed journal of %d bytes: %w", chain.ErrDiff, n, err)
	}
	dict := s2.MakeDict(block, nil)
	if dict == nil {
		return nil, fmt.Errorf("%w: packed journal of a block of %d bytes", chain.ErrDiff, len(block))
	}
	journal, err := dict.Decode(nil, packed)
	if err != nil {
		return nil, fmt.Errorf("%w: packed journal: %w", chain.ErrDiff, err)
	}
	return journal, nil
}

// journal returns the plain journal of a block between oldest and head. It is
// good until the cursor is used again.
func (c *cursor) journal(n chain.Number) ([]byte, error) {
	c.key = appendNumberKey(c.key[:0], spaceJournal, n)
	value, found, err := c.get()
	if err == nil && !found {
		err = missing(c.key)
	}
	if err != nil {
		return nil, err
	}
	return c.plainJournal(n, value)
}

// plainJournal returns the journal that is stored as value, which may be the
// cursor's own.
func (c *cursor) plainJournal(n chain.Number, value []byte) ([]byte, error) {
	if !isPacked(value) {
		return value, nil
	}
	stored := bytes.Clone(value)
	c.key = appendNumberKey(c.key[:0], spaceBlock, n)
	block, found, err := c.get()
	if err == nil && !found {
		err = missing(c.key)
	}
	if err != nil {
		return nil, err
	}
	journal, err := unpackJournal(stored, block)
	if err != nil {
		return nil, corrupt(appendNumberKey(nil, spaceJournal, n), "%w", err)
	}
	return journal, nil
}

// diff returns the journal of a block between oldest and head.
func (c *cursor) diff(n chain.Number) (*chain.Diff, error) {
	journal, err := c.journal(n)
	if err != nil {
		return nil, err
	}
	d, err := chain.DecodeDiff(journal)
	if err != nil {
		return nil, corrupt(appendNumberKey(nil, spaceJournal, n), "%w", err)
	}
	return d, nil
}
