// SPDX-License-Identifier: Apache-2.0

package merkle

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/chain"
)

// A page is a branch that is stored together with the leaves below it. Most
// nodes of a trie are leaves, and a leaf in its branch needs no key, and no hash
// in the branch: that is computed from it.
//
//	page   1 children(2) leaves(2) child…     bit i of both is for child i
//	child  length(uvarint) items of the leaf  where leaves has it
//	       hash(32)                           elsewhere
//
// A branch without leaves is stored as the node that it is, which begins with a
// byte of at least 0xc0.
type page struct {
	node   []byte         // the branch, or whatever is stored without leaves
	hashes [16]chain.Hash // of its children; zero where they are not known
	leaves [16][]byte     // nil where a child is no leaf in this page
}

const (
	pageMark       = 1
	pageHeaderSize = 1 + 2 + 2
	maxItems       = 1<<16 - 1 // more than any node has
	hashItem       = 0x80 + 32 // what RLP puts before a hash
	emptyItem      = 0x80
)

// leaf returns the leaf at a path one below the page's, nil where it has none
// with that hash. A nil page has none.
func (p *page) leaf(path []byte, hash chain.Hash) []byte {
	i := path[len(path)-1]
	if p == nil || int(i) >= len(p.leaves) || p.hashes[i] != hash {
		return nil
	}
	return p.leaves[i]
}

func isPage(stored []byte) bool { return len(stored) > 0 && stored[0] == pageMark }

// decodeStored returns what is stored under one key.
func decodeStored(stored []byte) (*page, error) {
	if isPage(stored) {
		return decodePage(stored)
	}
	return &page{node: stored}, nil
}

// decodePage computes the branch, so that whoever compares its hash has checked
// the leaves too.
func decodePage(stored []byte) (*page, error) {
	if len(stored) < pageHeaderSize {
		return nil, fmt.Errorf("%w: page of %d bytes", chain.ErrCorrupt, len(stored))
	}
	children, inline := binary.BigEndian.Uint16(stored[1:]), binary.BigEndian.Uint16(stored[3:])
	rest := stored[pageHeaderSize:]
	p := new(page)
	items := make([]byte, 0, 17+32*bits.OnesCount16(children))
	for i := range p.hashes {
		if children&(1<<i) == 0 {
			items = append(items, emptyItem)
			continue
		}
		size, n := uint64(len(p.hashes[i])), 0
		if inline&(1<<i) != 0 {
			size, n = binary.Uvarint(rest)
		}
		if n < 0 || size == 0 || size > min(uint64(len(rest)-n), maxItems) {
			return nil, fmt.Errorf("%w: page ends in child %d", chain.ErrCorrupt, i)
		}
		child := rest[n : n+int(size)]
		rest = rest[n+int(size):]
		if inline&(1<<i) != 0 {
			p.leaves[i] = encodeList(child)
			p.hashes[i] = crypto.Keccak256Hash(p.leaves[i])
		} else {
			p.hashes[i] = chain.Hash(child)
		}
		items = append(append(items, hashItem), p.hashes[i][:]...)
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%w: page with %d bytes too many", chain.ErrCorrupt, len(rest))
	}
	p.node = encodeList(append(items, emptyItem))
	return p, nil
}

// encodeList returns the RLP list of at most maxItems bytes of items.
func encodeList(items []byte) []byte {
	if len(items) < 56 {
		return append([]byte{0xc0 + byte(len(items))}, items...)
	}
	size := binary.BigEndian.AppendUint16(nil, uint16(len(items)))
	if size[0] == 0 {
		size = size[1:]
	}
	return append(append([]byte{0xf7 + byte(len(size))}, size...), items...)
}

// childHashes returns the hashes of a branch's children, zero where there is
// none. ok is false for every other node, and for a branch that holds more than
// hashes, which one over hashed keys does not.
func childHashes(node []byte) (hashes [16]chain.Hash, ok bool) {
	items, _, err := rlp.SplitList(node)
	if err != nil {
		return hashes, false
	}
	for i := range hashes {
		switch {
		case len(items) > 0 && items[0] == emptyItem:
			items = items[1:]
		case len(items) > 32 && items[0] == hashItem:
			hashes[i] = chain.Hash(items[1:33])
			items = items[33:]
		default:
			return hashes, false
		}
	}
	return hashes, len(items) == 1 && items[0] == emptyItem
}

// isLeaf tells a leaf from an extension by the flag in its key, and from a
// branch by the number of its items.
func isLeaf(node []byte) bool {
	items, _, err := rlp.SplitList(node)
	if err != nil {
		return false
	}
	if n, err := rlp.CountValues(items); err != nil || n != 2 {
		return false
	}
	key, _, err := rlp.SplitString(items)
	return err == nil && len(key) > 0 && key[0]&0x20 != 0
}

// encodeBranch returns a branch as it is stored. leaves are those of its children
// that go with it.
func encodeBranch(node []byte, hashes *[16]chain.Hash, leaves *[16][]byte) []byte {
	stored := append(make([]byte, 0, len(node)), pageMark, 0, 0, 0, 0)
	var children, inline uint16
	for i, h := range hashes {
		switch {
		case leaves[i] != nil:
			inline |= 1 << i
			children |= 1 << i
			items, _, _ := rlp.SplitList(leaves[i]) // it is a leaf
			stored = append(binary.AppendUvarint(stored, uint64(len(items))), items...)
		case h != (chain.Hash{}):
			children |= 1 << i
			stored = append(stored, h[:]...)
		}
	}
	if inline == 0 {
		return node
	}
	binary.BigEndian.PutUint16(stored[1:], children)
	binary.BigEndian.PutUint16(stored[3:], inline)
	return stored
}
