// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"fmt"

	"glimpse/chain"
)

// receipts expects the place of every transaction that a block lists.
func (k *checker) receipts(key, value []byte) error {
	if err := k.inOrder(key, k.heads.first+chain.Number(k.report.Receipts)); err != nil {
		return err
	}
	k.report.Receipts++
	s, err := decodeReceipts(value)
	if err != nil {
		return corrupt(key, "%w", err)
	}
	n := numberOf(key)
	for i := range s.len() {
		p, err := k.cursor.placesOf(s.hash(i))
		switch {
		case err != nil:
			return err
		case p.len() == 0:
			return corrupt(k.cursor.key, "missing, want block %d index %d", n, i)
		case !p.has(n, i):
			return corrupt(k.cursor.key, "is %s, want block %d index %d", p, n, i)
		}
		k.mined++
	}
	return nil
}

// transaction looks up the transactions of a key that has several: each must be
// another. For all others it is enough to count. Every place that a block lists was
// looked up, and all of them are different, so that one too many shows in the
// number.
func (k *checker) transaction(key, value []byte) error {
	p, err := decodePlaces(value)
	if err != nil {
		return corrupt(key, "%w", err)
	}
	k.report.Transactions += uint64(p.len())
	if n, _ := p.at(p.len() - 1); n > k.heads.head.Number {
		return corrupt(key, "is in block %d, above the head %d", n, k.heads.head.Number)
	}
	if p.len() == 1 {
		return nil
	}
	seen := make(map[chain.Hash]bool, p.len())
	for i := range p.len() {
		h, err := k.minedAs(key, p, i)
		if err != nil {
			return err
		}
		if seen[h] {
			return corrupt(key, "is %s, want one place for transaction %s", p, h)
		}
		seen[h] = true
	}
	return nil
}

// minedAs expects at a place a transaction that begins as its key does.
func (k *checker) minedAs(key []byte, p places, i int) (chain.Hash, error) {
	n, index := p.at(i)
	s, err := k.cursor.receipts(n)
	if err != nil {
		return chain.Hash{}, err
	}
	if index >= s.len() {
		return chain.Hash{}, corrupt(key, "is %s, and block %d has %d transactions", p, n, s.len())
	}
	h := s.hash(index)
	if !bytes.HasPrefix(h[:], key[1:]) {
		return chain.Hash{}, corrupt(key, "is %s, where %s is", p, h)
	}
	return h, nil
}

// findUnmined names a place without its transaction. It reads a block's receipts
// for each transaction, so it runs only where one is known to exist.
func (k *checker) findUnmined() error {
	err := k.each([]byte{spaceTx}, []byte{spaceTx + 1}, func(key, value []byte) error {
		p, err := decodePlaces(value)
		if err != nil {
			return err
		}
		for i := range p.len() {
			if _, err := k.minedAs(key, p, i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %d transactions, want the %d that blocks list", chain.ErrCorrupt, k.report.Transactions, k.mined)
}
