// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"glimpse/chain"
)

// txKeyBytes is how much of its hash a transaction is found by. The whole hash is
// with the receipts of its block already and is random, so that a second copy
// would be a good part of a store. Eight bytes are shared by next to no two
// transactions, and those that share them are told apart where they are.
const txKeyBytes = 8

const txKeySize = 1 + txKeyBytes

func appendTxKey(dst []byte, h chain.Hash) []byte {
	return append(append(dst, spaceTx), h[:txKeyBytes]...)
}

// placeSize is the length of a transaction's place: block and index.
const placeSize = numberSize + 4

// places is the value of a transaction key: where the transactions are whose
// hashes begin with the same bytes. They ascend, and there is at least one.
type places []byte

func (p places) len() int { return len(p) / placeSize }

func (p places) at(i int) (n chain.Number, index int) {
	p = p[i*placeSize:]
	return chain.Number(binary.BigEndian.Uint64(p)), int(binary.BigEndian.Uint32(p[numberSize:]))
}

// before returns the places in blocks before n.
func (p places) before(n chain.Number) places {
	for i := range p.len() {
		if at, _ := p.at(i); at >= n {
			return p[:i*placeSize]
		}
	}
	return p
}

func (p places) has(n chain.Number, index int) bool {
	for i := range p.len() {
		if block, at := p.at(i); block == n && at == index {
			return true
		}
	}
	return false
}

// String returns the places in words.
func (p places) String() string {
	words := make([]string, p.len())
	for i := range words {
		n, index := p.at(i)
		words[i] = fmt.Sprintf("block %d index %d", n, index)
	}
	return strings.Join(words, ", ")
}

func appendPlace(dst places, n chain.Number, index int) places {
	return binary.BigEndian.AppendUint32(appendNumber(dst, n), uint32(index))
}

func decodePlaces(data []byte) (places, error) {
	if len(data) == 0 || len(data)%placeSize != 0 {
		return nil, fmt.Errorf("%w: places of transactions of %d bytes", chain.ErrCorrupt, len(data))
	}
	p := places(data)
	for i := 1; i < p.len(); i++ {
		before, after := p[(i-1)*placeSize:i*placeSize], p[i*placeSize:(i+1)*placeSize]
		if slices.Compare(before, after) >= 0 {
			return nil, fmt.Errorf("%w: places of transactions out of order: %s", chain.ErrCorrupt, p)
		}
	}
	return p, nil
}

// placesOf returns where transactions are whose hashes begin as h does, which are
// none or nearly always one. They are good until it is called again.
func (c *cursor) placesOf(h chain.Hash) (places, error) {
	c.key = appendTxKey(c.key[:0], h)
	value, found, err := c.get()
	if !found {
		return nil, err
	}
	p, err := decodePlaces(value)
	if err != nil {
		return nil, corrupt(c.key, "%w", err)
	}
	c.places = append(c.places[:0], p...)
	return c.places, nil
}

// transactionAt returns the hash of the transaction at a place.
func (c *cursor) transactionAt(n chain.Number, index int) (chain.Hash, error) {
	s, err := c.receipts(n)
	if err != nil {
		return chain.Hash{}, err
	}
	if index >= s.len() {
		return chain.Hash{}, corrupt(c.key, "has %d transactions, want one at index %d", s.len(), index)
	}
	return s.hash(index), nil
}

// transaction returns the place of a transaction.
func (c *cursor) transaction(h chain.Hash) (n chain.Number, index int, found bool, err error) {
	p, err := c.placesOf(h)
	if err != nil {
		return 0, 0, false, err
	}
	for i := range p.len() {
		n, index = p.at(i)
		if at, err := c.transactionAt(n, index); err != nil || at == h {
			return n, index, err == nil, err
		}
	}
	return 0, 0, false, nil
}

// addTransactions adds the places of a block's transactions. It refuses one that
// the chain or the block itself has already: a transaction has one place. The
// cursor is nil for the first block.
func (c *changes) addTransactions(cur *cursor, b *Block) error {
	added := make(map[[txKeyBytes]byte]places, len(b.Transactions))
	for i, h := range b.Transactions {
		p, begun := added[[txKeyBytes]byte(h[:])]
		if !begun && cur != nil {
			stored, err := cur.placesOf(h)
			if err != nil {
				return err
			}
			p = slices.Clone(stored)
		}
		if err := b.newAmong(cur, p, h); err != nil {
			return err
		}
		p = appendPlace(p, b.Number, i)
		added[[txKeyBytes]byte(h[:])] = p
		c.key = appendTxKey(c.key[:0], h)
		c.set(c.key, p)
	}
	return nil
}

// newAmong refuses a transaction that is at one of the places. What those in b
// itself lead to is not stored yet.
func (b *Block) newAmong(cur *cursor, p places, h chain.Hash) error {
	for i := range p.len() {
		n, index := p.at(i)
		var at chain.Hash
		if n == b.Number && index < len(b.Transactions) {
			at = b.Transactions[index]
		} else {
			var err error
			if at, err = cur.transactionAt(n, index); err != nil {
				return err
			}
		}
		if at == h {
			return fmt.Errorf("transaction %s is in block %d already", h, n)
		}
	}
	return nil
}

// undoTransactions deletes the receipts of block n and the places of its
// transactions. The cursor reads the store as it was before blocks above n were
// undone, whose places go together with those of n.
func (c *changes) undoTransactions(cur *cursor, n chain.Number) error {
	s, err := cur.receipts(n)
	if err != nil {
		return err
	}
	s.hashes = slices.Clone(s.hashes)
	for i := range s.len() {
		p, err := cur.placesOf(s.hash(i))
		if err != nil {
			return err
		}
		c.key = appendTxKey(c.key[:0], s.hash(i))
		if p = p.before(n); p.len() > 0 {
			c.set(c.key, p)
		} else {
			c.delete(c.key)
		}
	}
	c.delete(appendNumberKey(nil, spaceReceipt, n))
	return nil
}
