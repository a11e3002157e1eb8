// SPDX-License-Identifier: Apache-2.0

package merkle

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// A front is what a page says of its children before they come.
//
//	form(1)      what follows
//	children(2)  bit i is set where there is a child i
//	leaves(2)    with formOthers: bit i is set where that is a leaf; else all are
//	size(1)…     with formSizes: of each leaf's value; else all are slots of 32 bytes
//	nibbles      where the rest of a path is odd: its first nibble, two in a byte
type front struct {
	children, leaves uint16

	// By child, for those that are leaves.
	sizes   [16]byte // see trimValue
	nibbles [16]byte // zero where the rest of a path is even
}

const (
	formOthers = 1 << iota // some children are not leaves
	formSizes              // some leaves hold something else than 32 bytes

	maxFront = 1 + 2 + 2 + 16 + 8
)

// addLeaf notes that child i is a leaf, which must be one that splitLeaf knows.
func (f *front) addLeaf(i, depth int, leaf []byte) {
	key, value, _ := splitLeaf(leaf, depth)
	f.children |= 1 << i
	f.leaves |= 1 << i
	_, f.sizes[i] = trimValue(value)
	f.nibbles[i] = key[0] & 0x0f
}

func (f *front) append(dst []byte, depth int) []byte {
	form := len(dst)
	dst = binary.BigEndian.AppendUint16(append(dst, 0), f.children)
	if f.leaves != f.children {
		dst[form] |= formOthers
		dst = binary.BigEndian.AppendUint16(dst, f.leaves)
	}
	if f.hasSizes() {
		dst[form] |= formSizes
		for left := f.leaves; left != 0; left &= left - 1 {
			dst = append(dst, f.sizes[bits.TrailingZeros16(left)])
		}
	}
	if restOf(depth)%2 != 0 {
		n := 0
		for left := f.leaves; left != 0; left &= left - 1 {
			nibble := f.nibbles[bits.TrailingZeros16(left)]
			if n%2 == 0 {
				dst = append(dst, nibble<<4)
			} else {
				dst[len(dst)-1] |= nibble
			}
			n++
		}
	}
	return dst
}

// hasSizes tells whether some leaf holds something else than 32 bytes.
func (f *front) hasSizes() bool {
	for left := f.leaves; left != 0; left &= left - 1 {
		if f.sizes[bits.TrailingZeros16(left)] != slotSize {
			return true
		}
	}
	return false
}

// decodeFront returns the front of a page, in the one form in which append writes
// it, and what follows.
func decodeFront(stored []byte, depth int) (f front, rest []byte, err error) {
	if restOf(depth) < 0 {
		return f, nil, errors.New("a path longer than a key")
	}
	if len(stored) < 3 || stored[0]&^(formOthers|formSizes) != 0 {
		return f, nil, errors.New("an unknown form")
	}
	form := stored[0]
	f.children, rest = binary.BigEndian.Uint16(stored[1:]), stored[3:]
	f.leaves = f.children
	if form&formOthers != 0 {
		if len(rest) < 2 {
			return f, nil, errShortFront
		}
		f.leaves, rest = binary.BigEndian.Uint16(rest), rest[2:]
		if f.leaves == f.children || f.leaves&^f.children != 0 {
			return f, nil, errors.New("other leaves than children")
		}
	}
	if rest, err = f.decodeSizes(rest, form&formSizes != 0); err != nil {
		return f, nil, err
	}
	if restOf(depth)%2 != 0 {
		rest, err = f.decodeNibbles(rest)
	}
	return f, rest, err
}

var errShortFront = errors.New("an end before its children")

func (f *front) decodeSizes(rest []byte, listed bool) ([]byte, error) {
	if listed && len(rest) < bits.OnesCount16(f.leaves) {
		return nil, errShortFront
	}
	for left := f.leaves; left != 0; left &= left - 1 {
		size := byte(slotSize)
		if listed {
			size, rest = rest[0], rest[1:]
		}
		if size == 0 {
			return nil, errors.New("a leaf without a value")
		}
		f.sizes[bits.TrailingZeros16(left)] = size
	}
	if listed && !f.hasSizes() {
		return nil, errors.New("sizes that go without saying")
	}
	return rest, nil
}

func (f *front) decodeNibbles(rest []byte) ([]byte, error) {
	size := (bits.OnesCount16(f.leaves) + 1) / 2
	if len(rest) < size {
		return nil, errShortFront
	}
	n := 0
	for left := f.leaves; left != 0; left &= left - 1 {
		f.nibbles[bits.TrailingZeros16(left)] = rest[n/2] >> (4 - 4*(n%2)) & 0x0f
		n++
	}
	if n%2 != 0 && rest[n/2]&0x0f != 0 {
		return nil, errors.New("a nibble of no leaf")
	}
	return rest[size:], nil
}
