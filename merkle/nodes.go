// SPDX-License-Identifier: Apache-2.0

package merkle

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common/lru"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/triedb/database"

	"glimpse/chain"
)

// Nodes is the store of side data. It is read concurrently and must show what
// was written in the latest batch. The slices that it returns are kept.
type Nodes interface {
	Side(key []byte) (value []byte, ok bool, err error)
}

// A Write is one change to the store of side data. Writes take effect in the
// order in which they are listed.
type Write struct {
	Key    []byte
	Value  []byte // nil deletes
	Prefix bool   // deletes every key that begins with Key
}

// The first byte of every key.
const (
	accountNode = 'a'
	storageNode = 's'
	rootRecord  = 'r'
)

// nodeKey returns the key of a node. The account trie has no owner.
func nodeKey(owner chain.Hash, path []byte) []byte {
	if owner == (chain.Hash{}) {
		return append([]byte{accountNode}, path...)
	}
	return append(storagePrefix(owner), path...)
}

// storagePrefix is what the keys of an account's storage nodes begin with.
func storagePrefix(owner chain.Hash) []byte {
	key := make([]byte, 0, 1+len(owner)+16)
	return append(append(key, storageNode), owner[:]...)
}

const rootRecordSize = 8 + 32 + 32

func encodeRoot(ref chain.Ref, root chain.Hash) []byte {
	record := binary.BigEndian.AppendUint64(make([]byte, 0, rootRecordSize), uint64(ref.Number))
	return append(append(record, ref.Hash[:]...), root[:]...)
}

func decodeRoot(record []byte) (ref chain.Ref, root chain.Hash, err error) {
	if len(record) != rootRecordSize {
		return ref, root, fmt.Errorf("%w: root record of %d bytes", chain.ErrCorrupt, len(record))
	}
	ref.Number = chain.Number(binary.BigEndian.Uint64(record))
	copy(ref.Hash[:], record[8:])
	copy(root[:], record[40:])
	return ref, root, nil
}

// A source gives stored nodes to go-ethereum's tries. Its cache goes by the
// hash of a node, not by its path, so that it cannot be out of date, and holds
// what is stored under one key. To read that takes the length of the path where
// it holds leaves, and then the hash is of no node at another depth.
type source struct {
	nodes Nodes
	cache *lru.SizeConstrainedCache[chain.Hash, []byte]
	last  atomic.Pointer[lastPage] // for whoever goes through a trie
}

// A lastPage is the page that was read last, and its key.
type lastPage struct {
	*page
	key []byte
}

func newSource(nodes Nodes, cacheBytes int) *source {
	return &source{
		nodes: nodes,
		cache: lru.NewSizeConstrainedCache[chain.Hash, []byte](uint64(max(cacheBytes, 0))),
	}
}

// NodeReader implements database.NodeDatabase. There is one stored state, and a
// node that does not belong to it is found out by its hash.
func (s *source) NodeReader(chain.Hash) (database.NodeReader, error) { return s, nil }

// Node implements database.NodeReader.
func (s *source) Node(owner chain.Hash, path []byte, hash chain.Hash) ([]byte, error) {
	if last := s.last.Load(); last != nil && len(path) > 0 && bytes.Equal(last.key, nodeKey(owner, path[:len(path)-1])) {
		if leaf := last.leaf(path, hash); leaf != nil {
			return leaf, nil
		}
	}
	p, own, err := s.load(owner, path, hash)
	if err != nil {
		return nil, err
	}
	if own {
		s.last.Store(&lastPage{p, nodeKey(owner, path)})
	}
	return p.node, nil
}

// load reads a node with the hash that it must have. own says that it is stored
// under its own key, and not as a leaf in the page above.
func (s *source) load(owner chain.Hash, path []byte, hash chain.Hash) (p *page, own bool, err error) {
	if stored, ok := s.cache.Get(hash); ok {
		p, err := decodeStored(stored, len(path))
		return p, true, err
	}
	key := nodeKey(owner, path)
	stored, own, err := s.nodes.Side(key)
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("read trie node %x: %w", key, err)
	case own:
		p, err = decodeStored(stored, len(path))
	default:
		p, err = s.leafAbove(owner, path, hash)
	}
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("trie node %x: %w", key, err)
	case crypto.Keccak256Hash(p.node) != hash:
		return nil, false, fmt.Errorf("%w: trie node %x does not have hash %s", chain.ErrCorrupt, key, hash)
	}
	if own {
		s.cache.Add(hash, stored)
	}
	return p, own, nil
}

// leafAbove reads a leaf from the page above it.
func (s *source) leafAbove(owner chain.Hash, path []byte, hash chain.Hash) (*page, error) {
	missing := fmt.Errorf("%w: it is missing", chain.ErrCorrupt)
	if len(path) == 0 {
		return nil, missing
	}
	above := path[:len(path)-1]
	stored, ok, err := s.nodes.Side(nodeKey(owner, above))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, missing
	}
	p, err := decodeStored(stored, len(above))
	if err != nil {
		return nil, err
	}
	leaf := p.leaf(path, hash)
	if leaf == nil {
		return nil, missing
	}
	return &page{node: leaf}, nil
}
