// SPDX-License-Identifier: Apache-2.0

package merkle

import (
	"fmt"
	"math/bits"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/chain"
)

// A page is a branch that is stored together with the leaves below it. Most
// nodes of a trie are leaves, and a leaf in its branch needs no key, and no hash
// in the branch: that is computed from it. How much of its path it holds follows
// from the depth of the page, which is the length of the page's own path.
//
//	page   form(1) children(2) [leaves(2)] [size(1)…] [nibbles] child…
//	child  rest of the path, value   where it is a leaf
//	       hash(32)                  elsewhere
//
// See front for what comes before the children. It stands together because it
// can be compressed, and what follows it cannot.
//
// Every branch is stored as a page, other nodes as they are. Those begin with a
// byte of at least 0xc0.
type page struct {
	node   []byte         // the branch, or whatever is stored without leaves
	hashes [16]chain.Hash // of its children; zero where they are not known
	leaves [16][]byte     // nil where a child is no leaf in this page
}

const (
	firstOfNode = 0xc0
	hashItem    = 0x80 + 32 // what RLP puts before a hash
	emptyItem   = 0x80
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

// decodeStored returns what is stored under a path of depth nibbles.
func decodeStored(stored []byte, depth int) (*page, error) {
	if len(stored) > 0 && stored[0] < firstOfNode {
		return decodePage(stored, depth)
	}
	if _, ok := childHashes(stored); ok {
		return nil, fmt.Errorf("%w: branch that is not a page", chain.ErrCorrupt)
	}
	return &page{node: stored}, nil
}

// decodePage computes the branch, so that whoever compares its hash has checked
// the leaves too.
func decodePage(stored []byte, depth int) (*page, error) {
	f, rest, err := decodeFront(stored, depth)
	if err != nil {
		return nil, fmt.Errorf("%w: page with %w", chain.ErrCorrupt, err)
	}
	p := new(page)
	leaves := make([]byte, 0, f.roomForLeaves(depth)) // one piece of memory for all
	size := 17 + 32*bits.OnesCount16(f.children)
	node := appendListHeader(make([]byte, 0, maxListHeader+size), size)
	for i := range p.hashes {
		if f.children&(1<<i) == 0 {
			node = append(node, emptyItem)
			continue
		}
		isLeaf := f.leaves&(1<<i) != 0
		n := len(p.hashes[i])
		if isLeaf {
			n = f.leafBytes(i, depth)
		}
		if n > len(rest) {
			return nil, fmt.Errorf("%w: page that ends in child %d", chain.ErrCorrupt, i)
		}
		if isLeaf {
			start, ok := len(leaves), false
			if leaves, ok = f.appendLeaf(leaves, i, depth, rest[:n]); !ok {
				return nil, fmt.Errorf("%w: page with a slot in child %d that is no slot", chain.ErrCorrupt, i)
			}
			p.leaves[i] = leaves[start:len(leaves):len(leaves)]
			p.hashes[i] = crypto.Keccak256Hash(p.leaves[i])
		} else if p.hashes[i] = chain.Hash(rest[:n]); p.hashes[i] == (chain.Hash{}) {
			return nil, fmt.Errorf("%w: page with a child %d that it does not have", chain.ErrCorrupt, i)
		}
		node = append(append(node, hashItem), p.hashes[i][:]...)
		rest = rest[n:]
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%w: page with %d bytes too many", chain.ErrCorrupt, len(rest))
	}
	p.node = append(node, emptyItem)
	return p, nil
}

// encodePage returns how a branch at a depth is stored. leaves are those of its
// children that go with it: splitLeaf is ok for each.
func encodePage(depth int, hashes *[16]chain.Hash, leaves *[16][]byte) []byte {
	var f front
	size := maxFront
	for i, h := range hashes {
		switch {
		case leaves[i] != nil:
			f.addLeaf(i, depth, leaves[i])
			size += f.leafBytes(i, depth)
		case h != (chain.Hash{}):
			f.children |= 1 << i
			size += len(h)
		}
	}
	stored := f.append(make([]byte, 0, size), depth)
	for i, h := range hashes {
		switch {
		case leaves[i] != nil:
			key, value, _ := splitLeaf(leaves[i], depth)
			content, _ := trimValue(value)
			stored = append(append(stored, key[1:]...), content...)
		case h != (chain.Hash{}):
			stored = append(stored, h[:]...)
		}
	}
	return stored
}

// childHashes returns the hashes of a branch's children, zero where there is
// none. ok is false for every other node, and for a branch that holds more than
// hashes, which one over hashed keys does not.
func childHashes(node []byte) (hashes [16]chain.Hash, ok bool) {
	items, after, err := rlp.SplitList(node)
	if err != nil || len(after) > 0 {
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
