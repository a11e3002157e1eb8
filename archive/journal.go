// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/s2"

	"glimpse/chain"
)

// A journal is what is stored of a block's diff: the diff without bytecode, which
// the store has under its hash already, and these hashes. Nearly all are without
// any.
type journal struct {
	block chain.Number
	codes []chain.Hash // of the bytecode that the diff brought, ascending
	bare  []byte       // the encoding of the diff without it
}

// encodeJournal returns the encoding of a whole diff, which digests cover, and that
// of its journal, which may share memory.
func encodeJournal(d *chain.Diff) (whole, journal []byte) {
	journal = binary.AppendUvarint(nil, uint64(len(d.Codes)))
	for _, code := range d.Codes {
		journal = append(journal, code.Hash[:]...)
	}
	bare := len(journal)
	journal = chain.AppendDiff(journal, &chain.Diff{Accounts: d.Accounts})
	if len(d.Codes) == 0 {
		return journal[bare:], journal
	}
	return chain.AppendDiff(nil, d), journal
}

// decodeJournal does not look into the diff, which is a part of data.
func decodeJournal(n chain.Number, data []byte) (journal, error) {
	count, size := binary.Uvarint(data)
	if size <= 0 || size > 1 && data[size-1] == 0 || count > uint64((len(data)-size)/hashSize) {
		return journal{}, fmt.Errorf("%w: number of codes", chain.ErrDiff)
	}
	j, rest := journal{block: n}, data[size:]
	for range count {
		h := chain.Hash(rest[:hashSize])
		if k := len(j.codes); k > 0 && j.codes[k-1].Cmp(h) >= 0 {
			return journal{}, fmt.Errorf("%w: codes out of order at %s", chain.ErrDiff, h)
		}
		j.codes, rest = append(j.codes, h), rest[hashSize:]
	}
	j.bare = rest
	return j, nil
}

// The first byte of a stored journal says how the rest is stored.
const (
	plainJournal  = 0
	packedJournal = 1
)

// maxPacked bounds what a packed journal may claim to hold.
const maxPacked = 256 << 20

// packJournal appends a journal as it is stored beside its block: packed where
// that is shorter. Much of what a block changed is named in it, by address or as
// an argument of a call, so that the block's value is the dictionary.
func packJournal(dst, journal, block []byte) []byte {
	dict := s2.MakeDict(block, nil)
	if dict != nil && len(journal) <= maxPacked {
		if packed := dict.Encode(nil, journal); len(packed) < len(journal) {
			return append(append(dst, packedJournal), packed...)
		}
	}
	return append(append(dst, plainJournal), journal...)
}

// unpackJournal reverses packJournal for what is packed, without its first byte.
func unpackJournal(packed, block []byte) ([]byte, error) {
	if n, err := s2.DecodedLen(packed); err != nil || n > maxPacked {
		return nil, fmt.Errorf("%w: packed journal of %d bytes: %v", chain.ErrDiff, n, err)
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

// journal returns the journal of a block between oldest and head. It is good until
// the cursor is used again.
func (c *cursor) journal(n chain.Number) (journal, error) {
	value, err := c.numbered(spaceJournal, n)
	if err != nil {
		return journal{}, err
	}
	return c.openJournal(n, value)
}

// openJournal returns the journal that is stored as value, which may be the
// cursor's own. It is good as long as value is, and until the cursor is used again.
func (c *cursor) openJournal(n chain.Number, value []byte) (journal, error) {
	data, err := c.plainJournal(n, value)
	if err != nil {
		return journal{}, err
	}
	j, err := decodeJournal(n, data)
	if err != nil {
		return journal{}, journalError(n, err)
	}
	return j, nil
}

func (c *cursor) plainJournal(n chain.Number, value []byte) ([]byte, error) {
	if len(value) == 0 || value[0] > packedJournal {
		return nil, journalError(n, fmt.Errorf("%w: neither plain nor packed", chain.ErrDiff))
	}
	if value[0] == plainJournal {
		return value[1:], nil
	}
	packed := bytes.Clone(value[1:])
	block, err := c.numbered(spaceBlock, n)
	if err != nil {
		return nil, err
	}
	data, err := unpackJournal(packed, block)
	if err != nil {
		return nil, journalError(n, err)
	}
	return data, nil
}

// bareDiff returns the diff without bytecode.
func (j *journal) bareDiff() (*chain.Diff, error) {
	d, err := chain.DecodeDiff(j.bare)
	if err == nil && len(d.Codes) > 0 {
		err = fmt.Errorf("%w: bytecode in a journal", chain.ErrDiff)
	}
	if err != nil {
		return nil, journalError(j.block, err)
	}
	return d, nil
}

// wholeDiff returns the diff with its bytecode, which the cursor is used for when
// the rest is decoded.
func (c *cursor) wholeDiff(j *journal) (*chain.Diff, error) {
	d, err := j.bareDiff()
	if err != nil {
		return nil, err
	}
	for _, h := range j.codes {
		_, code, found, err := c.code(h)
		if err == nil && !found {
			err = journalError(j.block, fmt.Errorf("its code %s is missing", h))
		}
		if err != nil {
			return nil, err
		}
		d.Codes = append(d.Codes, chain.Code{Hash: h, Bytes: code})
	}
	return d, nil
}

// encode returns the encoding of the diff that wholeDiff made of the journal. It is
// good as long as the journal is, which wholeDiff does not touch where it has no
// codes.
func (j *journal) encode(whole *chain.Diff) []byte {
	if len(j.codes) == 0 {
		return j.bare
	}
	return chain.AppendDiff(nil, whole)
}

// wholeJournal returns the encoding of the whole diff whose journal is stored as
// value. It is good as long as value is, and until the cursor is used again.
func (c *cursor) wholeJournal(n chain.Number, value []byte) ([]byte, error) {
	j, err := c.openJournal(n, value)
	if err != nil || len(j.codes) == 0 {
		return j.bare, err
	}
	d, err := c.wholeDiff(&j)
	if err != nil {
		return nil, err
	}
	return j.encode(d), nil
}

// diff returns what a block between oldest and head changed, with bytecode.
func (c *cursor) diff(n chain.Number) (*chain.Diff, error) {
	j, err := c.journal(n)
	if err != nil {
		return nil, err
	}
	return c.wholeDiff(&j)
}

// bareDiff returns what diff does without bytecode, and the hashes of that.
func (c *cursor) bareDiff(n chain.Number) (d *chain.Diff, codes []chain.Hash, err error) {
	j, err := c.journal(n)
	if err != nil {
		return nil, nil, err
	}
	d, err = j.bareDiff()
	return d, j.codes, err
}

// journalError is damage in the journal of a block.
func journalError(n chain.Number, err error) error {
	return corrupt(appendNumberKey(nil, spaceJournal, n), "%w", err)
}
