// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"

	"glimpse/chain"
)

// ContentDigest reads the whole store, in bounded memory, and returns a digest
// of what it says about its chain: identity, first, oldest and head block, and
// every version, journal, block, receipt, transaction and bytecode. Stores that
// were given the same blocks, and pruned at the same heads, have the same one,
// however each of them came to be: a writer and its replicas can be compared
// whole.
//
// Outside it is what may differ between such stores: side data, tags, the hashes
// of blocks that were unwound, the chain's configuration, and in a sparse store
// bytecode and what KeepOrigin was told, which depend on what was asked for.
//
// Unlike Check it believes what it reads, and unlike Digest it looks at what
// became of the blocks after they were committed. It ends early, with the
// context's error, when ctx does.
func (r *Reader) ContentDigest(ctx context.Context) (Digest, error) {
	d := contentDigest{sha256.New()}
	d.begin(&r.heads)
	err := r.read(func(c *cursor) error {
		for _, space := range contentSpaces {
			if space == spaceCode && r.heads.sparse {
				continue
			}
			if err := r.digestSpace(ctx, d, c, space); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Digest{}, fmt.Errorf("digest content: %w", err)
	}
	return Digest(d.hash.Sum(nil)), nil
}

// contentSpaces are read in this order, one after the other, so that what is
// outside costs nothing.
var contentSpaces = [...]byte{spaceAccount, spaceBlock, spaceCode, spaceHash, spaceJournal, spaceReceipt, spaceSlot, spaceWipe, spaceTx}

func (r *Reader) digestSpace(ctx context.Context, d contentDigest, c *cursor, space byte) (err error) {
	iter, err := r.scan([]byte{space}, []byte{space + 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, storeError(iter.Close())) }()
	keys := 0
	for ok := iter.First(); ok; ok = iter.Next() {
		if keys++; keys%progressKeys == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		value, err := iter.ValueAndErr()
		if err != nil {
			return storeError(err)
		}
		if space == spaceHash {
			canonical, err := r.canonical(c, iter.Key(), value)
			if err != nil {
				return err
			}
			if !canonical {
				continue
			}
		}
		if space == spaceJournal {
			if value, err = c.wholeJournal(numberOf(iter.Key()), value); err != nil {
				return err
			}
		}
		d.add(iter.Key(), value)
	}
	return nil
}

// canonical reports whether an entry of the hashes is of a block that is there.
func (r *Reader) canonical(c *cursor, key, value []byte) (bool, error) {
	n, err := decodeNumber(value)
	if err != nil {
		return false, corrupt(key, "%w", err)
	}
	if len(key) != hashKeySize || n < r.heads.first || n > r.heads.head.Number {
		return false, nil
	}
	b, err := c.block(n)
	return b.hash == chain.Hash(key[1:]), err
}

// A contentDigest hashes keys and values.
type contentDigest struct{ hash hash.Hash }

// begin puts what the store is about before what it holds.
func (d contentDigest) begin(h *heads) {
	about := appendNumber([]byte("glimpse content 1"), chain.Number(h.identity.ChainID))
	about = append(about, h.identity.Genesis[:]...)
	about = appendNumber(appendNumber(about, h.first), h.oldest)
	d.hash.Write(appendRef(about, h.head))
}

// add puts lengths before contents, so that no two contents run together to
// the same bytes.
func (d contentDigest) add(key, value []byte) {
	var sizes [16]byte
	binary.BigEndian.PutUint64(sizes[:8], uint64(len(key)))
	binary.BigEndian.PutUint64(sizes[8:], uint64(len(value)))
	d.hash.Write(sizes[:])
	d.hash.Write(key)
	d.hash.Write(value)
}
