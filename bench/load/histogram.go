// SPDX-License-Identifier: Apache-2.0

package load

import (
	"math/bits"
	"time"
)

const (
	// fine is the logarithm of how many buckets there are between one power of two
	// and the next: what a bucket holds differs by less than one percent.
	fine    = 7
	buckets = (64 - fine) << fine
)

// A Histogram counts times, each with an error of less than one percent, in
// memory that does not depend on how many there are. The zero value is empty.
type Histogram struct {
	counts [buckets]uint32
	total  uint64
}

// Add counts one time. What is negative counts as zero.
func (h *Histogram) Add(d time.Duration) {
	h.counts[bucket(uint64(max(d, 0)))]++
	h.total++
}

// Count returns how many times were added.
func (h *Histogram) Count() uint64 { return h.total }

// Quantile returns a time that the fraction q of all times does not exceed, the
// least one there is for 0 and the greatest for 1. It is zero where there are none.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.total == 0 {
		return 0
	}
	rank := uint64(q * float64(h.total))
	if float64(rank) < q*float64(h.total) {
		rank++
	}
	rank = min(max(rank, 1), h.total)
	seen := uint64(0)
	for i, n := range h.counts {
		if seen += uint64(n); seen >= rank {
			return time.Duration(middle(i))
		}
	}
	return time.Duration(middle(buckets - 1))
}

// bucket is the identity below 2<<fine, and logarithmic from there on.
func bucket(n uint64) int {
	shift := max(bits.Len64(n)-1-fine, 0)
	return shift<<fine + int(n>>shift)
}

// middle is a time between the least and the greatest of a bucket.
func middle(bucket int) uint64 {
	if bucket < 2<<fine {
		return uint64(bucket)
	}
	shift := bucket>>fine - 1
	least := uint64(bucket-shift<<fine) << shift
	return least + uint64(1)<<shift/2
}
