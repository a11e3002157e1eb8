// SPDX-License-Identifier: Apache-2.0

package archive

import (
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
		at, index, found, err := k.cursor.transaction(s.hash(i))
		if err != nil {
			return err
		}
		if !found {
			return corrupt(k.cursor.key, "missing, want block %d index %d", n, i)
		}
		if at != n || index != i {
			return corrupt(k.cursor.key, "is block %d index %d, want block %d index %d", at, index, n, i)
		}
		k.mined++
	}
	return nil
}

// transaction only counts: every place that a block lists was looked up, and
// all of them are different, so that one too many shows in the number.
func (k *checker) transaction(key, value []byte) error {
	k.report.Transactions++
	n, _, err := decodePlace(value)
	if err != nil {
		return corrupt(key, "%w", err)
	}
	if n > k.heads.head.Number {
		return corrupt(key, "is in block %d, above the head %d", n, k.heads.head.Number)
	}
	return nil
}

// findUnmined names a transaction that is not where its place says. It reads a
// block's receipts for each transaction, so it runs only where one is known to
// exist.
func (k *checker) findUnmined() error {
	err := k.each([]byte{spaceTx}, []byte{spaceTx + 1}, func(key, value []byte) error {
		n, index, err := decodePlace(value)
		if err != nil {
			return err
		}
		s, err := k.cursor.receipts(n)
		if err != nil {
			return err
		}
		if index >= s.len() || s.hash(index) != chain.Hash(key[1:]) {
			return corrupt(key, "is not transaction %d of block %d", index, n)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %d transactions, want the %d that blocks list", chain.ErrCorrupt, k.report.Transactions, k.mined)
}
