// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"github.com/cockroachdb/pebble/v2"
)

// newComparer orders keys by their bytes and tells Pebble where a version
// begins. Filters are then built over keys without versions, so that a slot
// that was never written costs no data block.
//
// The name is on disk: a store opened with another one is refused.
func newComparer() *pebble.Comparer {
	c := *pebble.DefaultComparer
	c.Name = "glimpse.v1"
	c.Split = split
	c.ImmediateSuccessor = immediateSuccessor
	return &c
}

// split returns the length of key before its version. Bounds may be shorter
// than a stem; they are all stem.
func split(key []byte) int {
	if len(key) == 0 {
		return 0
	}
	if stem := stemSize(key[0]); stem > 0 && len(key) > stem {
		return stem
	}
	return len(key)
}

// immediateSuccessor appends the smallest stem above a. Appending a zero byte
// to a whole stem would make it a version of itself.
func immediateSuccessor(dst, a []byte) []byte {
	if len(a) > 0 && len(a) == stemSize(a[0]) {
		return appendPast(dst, a)
	}
	return append(append(dst, a...), 0)
}
