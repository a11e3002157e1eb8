// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"github.com/ethereum/go-ethereum/crypto"

	"glimpse/chain"
)

func (k *checker) block(key, value []byte) error {
	n := numberOf(key)
	if err := k.inOrder(key, k.heads.first+chain.Number(k.report.Blocks)); err != nil {
		return err
	}
	b, err := decodeBlock(value)
	if err != nil {
		return corrupt(key, "%w", err)
	}
	switch {
	case n == 0 && b.hash != k.heads.identity.Genesis:
		return corrupt(key, "has hash %s, want the genesis %s", b.hash, k.heads.identity.Genesis)
	case n > k.heads.first && b.parent != k.lastBlock:
		return corrupt(key, "has parent %s, want %s", b.parent, k.lastBlock)
	}
	k.cursor.key = appendHashKey(k.cursor.key[:0], spaceHash, b.hash)
	at, found, err := k.cursor.get()
	if err != nil {
		return err
	}
	if m, err := decodeNumber(at); !found || err != nil || m != n {
		return corrupt(k.cursor.key, "is %x, want block %d", at, n)
	}
	k.report.Blocks++
	k.lastBlock = b.hash
	return nil
}

// inOrder expects a block or journal to be the next, and not above the head.
func (k *checker) inOrder(key []byte, want chain.Number) error {
	switch n, head := numberOf(key), k.heads.head.Number; {
	case n > head:
		return corrupt(key, "is above the head %d", head)
	case n != want:
		return corrupt(key, "want that of block %d here", want)
	}
	return nil
}

// hash leaves orphans out of the digest: which blocks were unwound is history,
// not content.
func (k *checker) hash(key, value []byte) error {
	n, err := decodeNumber(value)
	if err != nil {
		return corrupt(key, "%w", err)
	}
	if n < k.heads.first {
		return corrupt(key, "is block %d, before the first %d", n, k.heads.first)
	}
	if n <= k.heads.head.Number {
		b, err := k.cursor.block(n)
		if err != nil {
			return err
		}
		if b.hash == chain.Hash(key[1:]) {
			k.digest.add(key, value)
			return nil
		}
	}
	k.report.Orphans++
	return nil
}

func (k *checker) code(key, value []byte) error {
	k.report.Codes++
	first, code, err := decodeCode(value)
	if err != nil {
		return corrupt(key, "%w", err)
	}
	if first > k.heads.head.Number {
		return corrupt(key, "is of block %d, above the head %d", first, k.heads.head.Number)
	}
	if got, want := crypto.Keccak256Hash(code), chain.Hash(key[1:]); got != want {
		return corrupt(key, "its bytes have hash %s, want %s", got, want)
	}
	return nil
}

// journal returns the encoding of the whole diff, which is what the digest covers.
func (k *checker) journal(key, value []byte) (whole []byte, err error) {
	n := numberOf(key)
	if err := k.inOrder(key, k.heads.oldest+chain.Number(k.report.Journals)); err != nil {
		return nil, err
	}
	k.report.Journals++
	j, err := k.cursor.openJournal(n, value)
	if err != nil {
		return nil, err
	}
	d, err := k.cursor.wholeDiff(&j)
	if err != nil {
		return nil, err
	}
	whole = j.encode(d)
	if n == k.heads.oldest {
		return whole, nil // what it hid and what of it is absent was pruned
	}
	return whole, k.entries(n, d)
}

func (k *checker) meta(key, value []byte) error {
	switch name := string(key[1:]); name {
	case metaFormat, metaIdentity, metaHead, metaOldest:
		k.digest.add(key, value)
	case metaFirst:
		if !k.heads.sparse {
			return corrupt(key, "want none in a store that begins with genesis")
		}
		k.digest.add(key, value)
	case metaSafe, metaFinalized:
		ref, err := decodeRef(value)
		if err != nil {
			return corrupt(key, "%w", err)
		}
		if ref.Number > k.heads.head.Number {
			return corrupt(key, "is block %d, above the head %d", ref.Number, k.heads.head.Number)
		}
		if ref.Number < k.heads.first {
			return nil
		}
		b, err := k.cursor.block(ref.Number)
		if err != nil {
			return err
		}
		if b.hash != ref.Hash {
			return corrupt(key, "is %s, want the canonical hash %s", ref, b.hash)
		}
	default:
		return corrupt(key, "not a name of this format")
	}
	return nil
}
