// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"encoding/binary"
	"fmt"

	"glimpse/chain"
)

// storedReceipts is the value of a receipts key: the hashes of a block's
// transactions, one after the other, and what the writer made of their
// receipts. Both are parts of what was decoded.
type storedReceipts struct {
	hashes   []byte
	receipts []byte
}

func (s storedReceipts) len() int { return len(s.hashes) / hashSize }

func (s storedReceipts) hash(i int) chain.Hash { return chain.Hash(s.hashes[i*hashSize:]) }

func appendReceipts(dst []byte, hashes []chain.Hash, receipts []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(hashes)))
	for _, h := range hashes {
		dst = append(dst, h[:]...)
	}
	return append(dst, receipts...)
}

func decodeReceipts(data []byte) (s storedReceipts, err error) {
	count, n := binary.Uvarint(data)
	if n <= 0 || n > 1 && data[n-1] == 0 || count > uint64((len(data)-n)/hashSize) {
		return storedReceipts{}, fmt.Errorf("%w: number of transactions", chain.ErrCorrupt)
	}
	end := n + int(count)*hashSize
	return storedReceipts{data[n:end], data[end:]}, nil
}

// placeSize is the length of a transaction's place: block and index.
const placeSize = numberSize + 4

func appendPlace(dst []byte, n chain.Number, index int) []byte {
	return binary.BigEndian.AppendUint32(appendNumber(dst, n), uint32(index))
}

func decodePlace(data []byte) (n chain.Number, index int, err error) {
	if len(data) != placeSize {
		return 0, 0, fmt.Errorf("%w: place of a transaction %x", chain.ErrCorrupt, data)
	}
	n = chain.Number(binary.BigEndian.Uint64(data))
	return n, int(binary.BigEndian.Uint32(data[numberSize:])), nil
}

// receipts returns what is stored for a block up to the head, valid until the
// next seek.
func (c *cursor) receipts(n chain.Number) (storedReceipts, error) {
	c.key = appendNumberKey(c.key[:0], spaceReceipt, n)
	value, found, err := c.get()
	if err == nil && !found {
		err = missing(c.key)
	}
	if err != nil {
		return storedReceipts{}, err
	}
	return decodeReceipts(value)
}

// transaction returns the place of a transaction.
func (c *cursor) transaction(h chain.Hash) (n chain.Number, index int, found bool, err error) {
	c.key = appendHashKey(c.key[:0], spaceTx, h)
	value, found, err := c.get()
	if !found {
		return 0, 0, false, err
	}
	n, index, err = decodePlace(value)
	return n, index, err == nil, err
}

// addTransactions refuses a transaction that the chain or the block itself has
// already: there is one place under its hash, and unwinding would lose it. The
// cursor is nil for the first block.
func (c *changes) addTransactions(cur *cursor, b *Block) error {
	seen := make(map[chain.Hash]bool, len(b.Transactions))
	for i, h := range b.Transactions {
		var at chain.Number
		var known bool
		if cur != nil {
			var err error
			if at, _, known, err = cur.transaction(h); err != nil {
				return err
			}
		}
		if known || seen[h] {
			if seen[h] {
				at = b.Number
			}
			return fmt.Errorf("transaction %s is in block %d already", h, at)
		}
		seen[h] = true
		c.key = appendHashKey(c.key[:0], spaceTx, h)
		c.value = appendPlace(c.value[:0], b.Number, i)
		c.set(c.key, c.value)
	}
	return nil
}

// undoTransactions deletes the receipts of block n and the places of its
// transactions.
func (c *changes) undoTransactions(cur *cursor, n chain.Number) error {
	s, err := cur.receipts(n)
	if err != nil {
		return err
	}
	for i := range s.len() {
		c.key = appendHashKey(c.key[:0], spaceTx, s.hash(i))
		c.delete(c.key)
	}
	c.delete(appendNumberKey(nil, spaceReceipt, n))
	return nil
}
