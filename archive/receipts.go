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

// receipts returns what is stored for a block up to the head, valid until the
// next seek.
func (c *cursor) receipts(n chain.Number) (storedReceipts, error) {
	value, err := c.numbered(spaceReceipt, n)
	if err != nil {
		return storedReceipts{}, err
	}
	return decodeReceipts(value)
}
