// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"

	"glimpse/chain"
)

// A Digest stands for everything that a store was given of a chain up to one
// block: two stores with the same Digest at a block were given the same blocks
// and the same changes, from the first that they have. Each covers the one
// before it, so comparing the newest compares all.
//
// A state root says what the state is; a Digest also says that header, body,
// receipts and bytecode arrived as they were sent, costs no trie, and exists for
// chains whose roots nobody here can compute.
//
// Side data, tags and what KeepOrigin was told are outside: they are not the
// same in every store of one chain.
type Digest [sha256.Size]byte

// String returns the digest in hex.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// digestDomain keeps digests apart from every other use of the same hash, and
// changes when what they cover does.
const digestDomain = "glimpse digest 1"

// digestSeed is what the first digest of a chain follows.
func digestSeed(id Identity) Digest {
	data := appendNumber([]byte(digestDomain), chain.Number(id.ChainID))
	return sha256.Sum256(append(data, id.Genesis[:]...))
}

// A digester computes the digest of one block from the values that are stored
// for it: the block, its journal, its receipts, in this order. They hold all
// that Commit was given, each in the one form that it has.
//
// SHA-256 because processors have instructions for it, so that it does not show in
// the time of a commit; and the hash must be safe against somebody who chooses the
// contents of blocks, which checksums and keyed hashes are not.
type digester struct{ hash hash.Hash }

func newDigester(previous Digest, n chain.Number) digester {
	d := digester{sha256.New()}
	d.hash.Write(previous[:])
	d.hash.Write(appendNumber(nil, n))
	return d
}

// add puts the length before the value, so that no two lists of values run
// together to the same bytes.
func (d digester) add(value []byte) {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(value)))
	d.hash.Write(size[:])
	d.hash.Write(value)
}

func (d digester) sum() (sum Digest) {
	d.hash.Sum(sum[:0])
	return sum
}

// digestedSpaces are what a digest covers of a block.
var digestedSpaces = [...]byte{spaceBlock, spaceJournal, spaceReceipt}

// nextDigest computes the digest of a block whose journal is stored.
func (c *cursor) nextDigest(previous Digest, n chain.Number) (Digest, error) {
	d := newDigester(previous, n)
	for _, space := range digestedSpaces {
		value, err := c.numbered(space, n)
		if err == nil && space == spaceJournal {
			value, err = c.wholeJournal(n, value)
		}
		if err != nil {
			return Digest{}, err
		}
		d.add(value)
	}
	return d.sum(), nil
}

// digest returns a stored digest: one that is missing is damage.
func (c *cursor) digest(n chain.Number) (Digest, error) {
	value, err := c.numbered(spaceDigest, n)
	if err != nil {
		return Digest{}, err
	}
	return decodeDigest(value)
}

func decodeDigest(data []byte) (Digest, error) {
	if len(data) != sha256.Size {
		return Digest{}, fmt.Errorf("%w: digest of %d bytes", chain.ErrCorrupt, len(data))
	}
	return Digest(data), nil
}

func (c *changes) setDigest(n chain.Number, d Digest) {
	c.key = appendNumberKey(c.key[:0], spaceDigest, n)
	c.set(c.key, d[:])
}

// Digest returns the digest of block n. After the head and before the first
// block the error is a *chain.Miss. Pruning keeps digests. That of the head is in
// memory.
func (r *Reader) Digest(n chain.Number) (d Digest, err error) {
	if err := r.has(n); err != nil {
		return Digest{}, err
	}
	if n == r.heads.head.Number {
		return r.heads.digest, nil
	}
	err = r.read(func(c *cursor) error {
		d, err = c.digest(n)
		return err
	})
	if err != nil {
		return Digest{}, fmt.Errorf("read digest of %d: %w", n, err)
	}
	return d, nil
}

// Digest returns the head and its digest, both of one moment. The errors are
// those of NewReader.
func (db *DB) Digest() (chain.Ref, Digest, error) {
	r, err := db.NewReader()
	if err != nil {
		return chain.Ref{}, Digest{}, err
	}
	defer r.Release()
	d, err := r.Digest(r.Head().Number)
	return r.Head(), d, err
}
