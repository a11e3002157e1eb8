// SPDX-License-Identifier: Apache-2.0

package merkle

import (
	"encoding/binary"
	"fmt"

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
// hash of a node, not by its path, so that it cannot be out of date.
type source struct {
	nodes Nodes
	cache *lru.SizeConstrainedCache[chain.Hash, []byte]
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
	if blob, ok := s.cache.Get(hash); ok {
		return blob, nil
	}
	key := nodeKey(owner, path)
	blob, ok, err := s.nodes.Side(key)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read trie node %x: %w", key, err)
	case !ok:
		return nil, fmt.Errorf("%w: trie node %x is missing", chain.ErrCorrupt, key)
	case crypto.Keccak256Hash(blob) != hash:
		return nil, fmt.Errorf("%w: trie node %x does not have hash %s", chain.ErrCorrupt, key, hash)
	}
	s.cache.Add(hash, blob)
	return blob, nil
}
