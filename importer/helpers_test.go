// SPDX-License-Identifier: Apache-2.0

package importer_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/chain"
	"glimpse/evm"
	"glimpse/importer"
	"glimpse/internal/chaingen"
	"glimpse/internal/memview"
	"glimpse/merkle"
)

// A memStore keeps a chain in memory.
type memStore struct {
	t      testing.TB
	blocks []importer.Block
	state  *memview.State
	nodes  map[string][]byte
	tries  *merkle.State
	failAt chain.Number // Commit of this block fails; 0 never
	opened int          // Heads that were not released
}

var errCommit = errors.New("disk full")

func newStore(t testing.TB, genesis []byte) (*memStore, *evm.Rules) {
	t.Helper()
	g, err := evm.ParseGenesis(genesis)
	if err != nil {
		t.Fatal(err)
	}
	s := &memStore{t: t, state: memview.New(), nodes: make(map[string][]byte)}
	if s.tries, err = merkle.Open(s, 1<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := s.tries.Apply(g.Diff); err != nil {
		t.Fatal(err)
	}
	block, err := importer.NewBlock(g.Block, nil, g.Diff)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(block); err != nil {
		t.Fatal(err)
	}
	return s, g.Rules
}

func (s *memStore) head() chain.Ref { return s.blocks[len(s.blocks)-1].Ref }

func (s *memStore) Head() (importer.Head, error) {
	if s.opened != 0 {
		s.t.Errorf("head opened before the last one was released")
	}
	s.opened++
	return importer.Head{Ref: s.head(), View: s.state, Release: func() { s.opened-- }}, nil
}

func (s *memStore) Hash(n chain.Number) (chain.Hash, error) { return s.blocks[n].Hash, nil }

func (s *memStore) Header(n chain.Number) ([]byte, error) { return s.blocks[n].Header, nil }

func (s *memStore) Commit(b importer.Block) error {
	if s.failAt != 0 && b.Number == s.failAt {
		return errCommit
	}
	if err := s.state.Apply(b.Diff); err != nil {
		return err
	}
	for _, w := range s.tries.Commit(b.Ref) {
		switch {
		case w.Prefix:
			maps.DeleteFunc(s.nodes, func(key string, _ []byte) bool { return bytes.HasPrefix([]byte(key), w.Key) })
		case w.Value == nil:
			delete(s.nodes, string(w.Key))
		default:
			s.nodes[string(w.Key)] = w.Value
		}
	}
	s.blocks = append(s.blocks, b)
	return nil
}

func (s *memStore) Side(key []byte) ([]byte, bool, error) {
	value, ok := s.nodes[string(key)]
	return value, ok, nil
}

// generated is a chain with its genesis file.
func generated(seed uint64, blocks int) (genesis []byte, list []*types.Block) {
	return chaingen.Generate(seed, blocks, chaingen.Options{Forks: chaingen.Newest})
}

func encode(t testing.TB, blocks ...*types.Block) []byte {
	t.Helper()
	var buffer bytes.Buffer
	for _, b := range blocks {
		if err := rlp.Encode(&buffer, b); err != nil {
			t.Fatal(err)
		}
	}
	return buffer.Bytes()
}

func compress(t testing.TB, data []byte) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w := gzip.NewWriter(&buffer)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func writeFile(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// changed is a block with another header.
func changed(b *types.Block, change func(*types.Header)) *types.Block {
	header := b.Header()
	change(header)
	return types.NewBlockWithHeader(header).WithBody(*b.Body())
}
