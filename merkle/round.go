// SPDX-License-Identifier: Apache-2.0

package merkle

import (
	"bytes"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/trie/trienode"
	"github.com/ethereum/go-ethereum/triedb/database"

	"glimpse/chain"
)

// A round is what tries read from the source until they are committed. A trie
// reads every stored node before it changes or deletes it, and its parent
// before it, so the round knows how those are stored.
type round struct {
	source *source

	mu   sync.Mutex       // storage tries read side by side
	read map[string]*page // by key, those with a key of their own
}

func newRound(s *source) *round { return &round{source: s, read: make(map[string]*page)} }

// NodeReader implements database.NodeDatabase.
func (r *round) NodeReader(chain.Hash) (database.NodeReader, error) { return r, nil }

// Node implements database.NodeReader.
func (r *round) Node(owner chain.Hash, path []byte, hash chain.Hash) ([]byte, error) {
	if len(path) > 0 {
		if leaf := r.page(owner, path[:len(path)-1]).leaf(path, hash); leaf != nil {
			return leaf, nil
		}
	}
	p, own, err := r.source.load(owner, path, hash)
	if err != nil {
		return nil, err
	}
	if own {
		r.mu.Lock()
		r.read[string(nodeKey(owner, path))] = p
		r.mu.Unlock()
	}
	return p.node, nil
}

// page returns what was read under the key of a path, nil if nothing was.
func (r *round) page(owner chain.Hash, path []byte) *page {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read[string(nodeKey(owner, path))]
}

// writes returns what is to be stored for the nodes of one trie, in key order.
func (r *round) writes(set *trienode.NodeSet) (writes []Write) {
	inPages := make(map[string]bool) // paths of leaves
	for path, node := range set.Nodes {
		if hashes, ok := childHashes(node.Blob); ok {
			leaves := r.leaves(set, path, &hashes, inPages)
			writes = append(writes, r.write(set.Owner, path, node, encodePage(len(path), &hashes, &leaves)))
		}
	}
	for path, node := range set.Nodes {
		_, isBranch := childHashes(node.Blob)
		switch {
		case isBranch: // above
		case !node.IsDeleted() && !inPages[path]:
			writes = append(writes, r.write(set.Owner, path, node, node.Blob))
		case r.page(set.Owner, []byte(path)) != nil: // it had a key of its own
			writes = append(writes, Write{Key: nodeKey(set.Owner, []byte(path))})
		}
	}
	slices.SortFunc(writes, func(a, b Write) int { return bytes.Compare(a.Key, b.Key) })
	return writes
}

func (r *round) write(owner chain.Hash, path string, node *trienode.Node, stored []byte) Write {
	r.source.cache.Add(node.Hash, stored)
	return Write{Key: nodeKey(owner, []byte(path)), Value: stored}
}

// leaves returns the children of a branch that go into its page, and notes those
// that are new. One that is not is in the page already.
func (r *round) leaves(set *trienode.NodeSet, path string, hashes *[16]chain.Hash, inPages map[string]bool) (leaves [16][]byte) {
	before := r.page(set.Owner, []byte(path))
	for i, hash := range hashes {
		if hash == (chain.Hash{}) {
			continue
		}
		below := path + string([]byte{byte(i)})
		if node := set.Nodes[below]; node == nil {
			leaves[i] = before.leaf([]byte(below), hash)
		} else if _, _, ok := splitLeaf(node.Blob, len(path)); ok {
			leaves[i] = node.Blob
			inPages[below] = true
		}
	}
	return leaves
}
