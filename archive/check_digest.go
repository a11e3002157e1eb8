// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"

	"glimpse/chain"
)

// inDigests expects a digest to be of the next block, and not above the head.
// Digests are not in the digest of the content: they follow from the blocks.
func (k *checker) inDigests(key []byte) error {
	err := k.inOrder(key, k.heads.first+chain.Number(k.report.Digests))
	k.report.Digests++
	return err
}

// digests computes every digest again whose block still has its journal. It runs
// after all else was found to agree, so that what it finds is the digest's own
// damage and not that of something it covers.
func (k *checker) digests() error {
	if want := k.report.Blocks; k.report.Digests != want {
		return fmt.Errorf("%w: %d digests, want %d up to the head", chain.ErrCorrupt, k.report.Digests, want)
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
