// SPDX-License-Identifier: Apache-2.0

package merkle

import (
	"encoding/binary"
	"math/bits"

	"github.com/ethereum/go-ethereum/rlp"
)

const (
	keyNibbles = 64 // keys are hashes
	slotSize   = 32
	maxValue   = 255 - slotSize // an account has less

	// In the first byte of a leaf's key.
	leafFlag = 0x20 // it is no extension
	oddFlag  = 0x10 // the lower half of the byte is the first nibble
)

// restOf returns how many nibbles of a path a leaf holds, whose branch is at a
// depth: one more leads from there to the leaf.
func restOf(depth int) int { return keyNibbles - 1 - depth }

// splitLeaf returns key and value of a leaf; the key is the rest of its path after
// a byte of flags. ok is false for every other node, and for a leaf that a page at
// that depth cannot hold.
func splitLeaf(node []byte, depth int) (key, value []byte, ok bool) {
	items, after, err := rlp.SplitList(node)
	if err != nil || len(after) > 0 {
		return nil, nil, false
	}
	if key, items, err = rlp.SplitString(items); err != nil {
		return nil, nil, false
	}
	if value, items, err = rlp.SplitString(items); err != nil || len(items) > 0 {
		return nil, nil, false
	}
	rest := restOf(depth)
	if rest < 0 || len(key) != 1+rest/2 || len(value) == 0 || len(value) > maxValue {
		return nil, nil, false
	}
	return key, value, key[0] == leafFlag && rest%2 == 0 || key[0]&^0x0f == leafFlag|oddFlag && rest%2 != 0
}

// trimValue returns what a page stores of a leaf's value and its size. A slot is
// stored without its RLP, and its size is at most slotSize; anything else is
// stored whole, and its size is what exceeds slotSize.
func trimValue(value []byte) (content []byte, size byte) {
	slot, after, err := rlp.SplitString(value)
	if err == nil && len(after) == 0 && len(slot) > 0 && len(slot) <= slotSize {
		return slot, byte(len(slot))
	}
	return value, byte(slotSize + len(value))
}

// leafBytes is how much a page stores of leaf i after its front.
func (f *front) leafBytes(i, depth int) int {
	size := int(f.sizes[i])
	if size > slotSize {
		size -= slotSize
	}
	return restOf(depth)/2 + size
}

// roomForLeaves is how much memory all leaves take at most.
func (f *front) roomForLeaves(depth int) (n int) {
	const framing = maxListHeader + 2 + 2 + 1 // with flags, and headers of key, value and slot
	for left := f.leaves; left != 0; left &= left - 1 {
		n += framing + f.leafBytes(bits.TrailingZeros16(left), depth)
	}
	return n
}

// appendLeaf appends the node that leaf i is, of which stored is what follows the
// front. ok is false for a slot that is not stored as one.
func (f *front) appendLeaf(dst []byte, i, depth int, stored []byte) (leaf []byte, ok bool) {
	path, value := stored[:restOf(depth)/2], stored[restOf(depth)/2:]
	var slot [1 + slotSize]byte
	if f.sizes[i] <= slotSize {
		value = appendString(slot[:0], value)
	} else if _, size := trimValue(value); size != f.sizes[i] {
		return dst, false
	}
	keySize := 1 // flags are below 0x80
	if len(path) > 0 {
		keySize = 1 + 1 + len(path)
	}
	dst = appendListHeader(dst, keySize+int(rlp.BytesSize(value)))
	if len(path) > 0 {
		dst = append(dst, emptyItem+byte(1+len(path)))
	}
	if restOf(depth)%2 == 0 {
		dst = append(dst, leafFlag)
	} else {
		dst = append(dst, leafFlag|oddFlag|f.nibbles[i])
	}
	return appendString(append(dst, path...), value), true
}

// appendString appends the RLP of at most 255 bytes.
func appendString(dst, s []byte) []byte {
	switch {
	case len(s) == 1 && s[0] < emptyItem:
	case len(s) < 56:
		dst = append(dst, emptyItem+byte(len(s)))
	default:
		dst = append(dst, 0xb8, byte(len(s)))
	}
	return append(dst, s...)
}

const maxListHeader = 1 + 2

// appendListHeader appends what RLP puts before a list of size bytes, which are
// less than 65536.
func appendListHeader(dst []byte, size int) []byte {
	switch {
	case size < 56:
		return append(dst, 0xc0+byte(size))
	case size < 256:
		return append(dst, 0xf8, byte(size))
	default:
		return binary.BigEndian.AppendUint16(append(dst, 0xf9), uint16(size))
	}
}
