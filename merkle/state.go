// SPDX-License-Identifier: Apache-2.0

package merkle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/ethereum/go-ethereum/trie/trienode"

	"glimpse/chain"
)

// A State is the tries of one block, to which Diffs are applied. What is applied
// stays in memory until Commit hands it out to be stored.
type State struct {
	source *source

	// Where the stored tries stand. known is false while no block is recorded.
	ref   chain.Ref
	root  chain.Hash
	known bool

	// What is applied and not committed, and what was read for it.
	round    *round
	accounts *trie.Trie                // nil while nothing is
	storages map[chain.Hash]*trie.Trie // by owner, the keccak of the address
	wiped    map[chain.Hash]bool       // owners whose stored nodes are void
}

// Open returns the tries as they are stored. cacheBytes bounds the nodes that
// are kept in memory; 0 keeps none. A store without tries gives the empty
// state, see At.
func Open(nodes Nodes, cacheBytes int) (*State, error) {
	s := &State{source: newSource(nodes, cacheBytes), root: types.EmptyRootHash}
	s.Discard()
	record, ok, err := nodes.Side([]byte{rootRecord})
	if err != nil {
		return nil, fmt.Errorf("read root record: %w", err)
	}
	if !ok {
		return s, nil
	}
	if s.ref, s.root, err = decodeRoot(record); err != nil {
		return nil, err
	}
	s.known = true
	return s, nil
}

// At returns the block that the stored tries belong to and its state root. ok
// is false where no block is recorded: the store has no tries, or a Rebuild did
// not finish.
func (s *State) At() (ref chain.Ref, root chain.Hash, ok bool) {
	return s.ref, s.root, s.known
}

// Discard forgets what was applied since the last Commit.
func (s *State) Discard() {
	s.round = newRound(s.source)
	s.accounts = nil
	s.storages = make(map[chain.Hash]*trie.Trie)
	s.wiped = make(map[chain.Hash]bool)
}

// Commit makes what was applied the state of block and returns what must be
// written for it, in the batch of the block. If that cannot be stored, the State
// must not be used any more. Values are not to be modified.
func (s *State) Commit(block chain.Ref) []Write {
	writes := s.flush()
	s.ref, s.known = block, true
	return append(writes, Write{Key: []byte{rootRecord}, Value: encodeRoot(block, s.root)})
}

// flush returns the nodes of what was applied, without saying which block they
// belong to. Void storage comes first: the account may have storage again.
func (s *State) flush() (writes []Write) {
	for _, owner := range sortedHashes(s.wiped) {
		writes = append(writes, Write{Key: storagePrefix(owner), Prefix: true})
	}
	for _, owner := range sortedHashes(s.storages) {
		_, nodes := s.storages[owner].Commit(false)
		writes = s.appendNodes(writes, nodes)
	}
	if s.accounts != nil {
		root, nodes := s.accounts.Commit(false)
		writes = s.appendNodes(writes, nodes)
		s.root = root
	}
	s.Discard()
	return writes
}

func (s *State) appendNodes(writes []Write, set *trienode.NodeSet) []Write {
	if set == nil { // nothing changed in this trie
		return writes
	}
	return append(writes, s.round.writes(set)...)
}

func sortedHashes[V any](m map[chain.Hash]V) []chain.Hash {
	return slices.SortedFunc(maps.Keys(m), func(a, b chain.Hash) int { return cmp.Compare(string(a[:]), string(b[:])) })
}
