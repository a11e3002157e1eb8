// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"

	"glimpse/chain"
)

// inDigests expects a digest to be of the next block, and not above the head.
// Digests are not in the digest of the content: they begin where the store was
// first opened by a program that knew of them.
func (k *checker) inDigests(key []byte) error {
	if !k.heads.digests.known {
		return corrupt(key, "want none in a store without digests")
	}
	err := k.inOrder(key, k.heads.digests.begin+chain.Number(k.report.Digests))
	k.report.Digests++
	return err
}

// digests computes every digest again whose block still has its journal. It runs
// after all else was found to agree, so that what it finds is the digest's own
// damage and not that of something it covers.
func (k *checker) digests() error {
	known, head := k.heads.digests, k.heads.head.Number
	if !known.known {
		return nil
	}
	if known.begin < k.heads.first || known.begin > head {
		return corrupt(metaKey(metaDigests), "is block %d, want one from %d to %d", known.begin, k.heads.first, head)
	}
	if want := uint64(head-known.begin) + 1; k.report.Digests != want {
		return fmt.Errorf("%w: %d digests, want %d from where they begin to the head", chain.ErrCorrupt, k.report.Digests, want)
	}
	previous := digestSeed(k.heads.identity)
	return k.each([]byte{spaceDigest}, []byte{spaceDigest + 1}, func(key, _ []byte) error {
		n := numberOf(key)
		got, err := k.cursor.digest(n)
		if err != nil {
			return err
		}
		if n >= k.heads.oldest {
			want, err := k.cursor.nextDigest(previous, n)
			if err != nil {
				return err
			}
			if got != want {
				return corrupt(key, "is %s, want %s", got, want)
			}
		}
		previous = got
		return nil
	})
}
