// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"errors"
	"math"
	"strconv"
)

// A Progress is how far a snapshot must be for a caller to be content with it: a
// sealed block, or a flashblock of one that may not be sealed yet. The zero
// Progress is genesis, which every snapshot has reached.
type Progress struct {
	number Number
	index  uint64
	inside bool // index is given: a part of the block is enough
}

// ParseProgress reads "<number>" or "<number>.<index>", both decimal and without
// sign or leading zeros.
func ParseProgress[T string | []byte](text T) (Progress, error) {
	end := 0
	for end < len(text) && text[end] != '.' {
		end++
	}
	number, ok := parseDecimal(text[:end])
	if !ok || Number(number) > MaxNumber {
		return Progress{}, errNotProgress
	}
	p := Progress{number: Number(number)}
	if end == len(text) {
		return p, nil
	}
	if p.index, ok = parseDecimal(text[end+1:]); !ok {
		return Progress{}, errNotProgress
	}
	p.inside = true
	return p, nil
}

var errNotProgress = errors.New("want <number> or <number>.<index>, decimal, without leading zeros")

func parseDecimal[T string | []byte](text T) (n uint64, ok bool) {
	if len(text) == 0 || text[0] == '0' && len(text) > 1 {
		return 0, false
	}
	for i := range len(text) {
		digit := uint64(text[i] - '0')
		if digit > 9 || n > (math.MaxUint64-digit)/10 {
			return 0, false
		}
		n = 10*n + digit
	}
	return n, true
}

// ReachedBy reports whether a snapshot is far enough whose newest sealed block
// has number latest and whose newest pre-confirmed block is pending, nil where
// nothing is pre-confirmed. A sealed block has all its flashblocks.
func (p Progress) ReachedBy(latest Number, pending *Preconfirmed) bool {
	if latest >= p.number {
		return true
	}
	if !p.inside || pending == nil {
		return false
	}
	n := Number(pending.Header.Number.Uint64())
	return n > p.number || n == p.number && pending.Index >= p.index
}

// String returns p as ParseProgress reads it.
func (p Progress) String() string {
	text := strconv.FormatUint(uint64(p.number), 10)
	if p.inside {
		text += "." + strconv.FormatUint(p.index, 10)
	}
	return text
}
