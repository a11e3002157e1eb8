// SPDX-License-Identifier: Apache-2.0

package evm_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"

	"glimpse/chain"
	"glimpse/evm"
	"glimpse/internal/chaingen"
	"glimpse/internal/fixture"
	"glimpse/internal/memview"
	"glimpse/merkle"
	"glimpse/merkle/merkletest"
)

// A replay executes a chain block by block in memory, with everything checked.
type replay struct {
	rules  *evm.Rules
	state  *memview.State
	head   *types.Header
	hashes []chain.Hash
	nodes  merkletest.Nodes
	tries  *merkle.State
}

func newReplay(t testing.TB, genesisText []byte) *replay {
	t.Helper()
	genesis, err := evm.ParseGenesis(genesisText)
	if err != nil {
		t.Fatal(err)
	}
	r := &replay{rules: genesis.Rules, state: memview.New(), head: genesis.Block.Header(), nodes: make(merkletest.Nodes)}
	if r.tries, err = merkle.Open(r.nodes, 1<<20); err != nil {
		t.Fatal(err)
	}
	root, err := r.tries.Apply(genesis.Diff)
	if err != nil {
		t.Fatal(err)
	}
	if root != genesis.Block.Root() {
		t.Fatalf("got genesis root %s, want %s", root, genesis.Block.Root())
	}
	r.commit(t, genesis.Block, genesis.Diff)
	return r
}

func (r *replay) commit(t testing.TB, block *types.Block, diff *chain.Diff) {
	t.Helper()
	if err := r.state.Apply(diff); err != nil {
		t.Fatalf("block %d: %v", block.NumberU64(), err)
	}
	ref := chain.Ref{Number: chain.Number(block.NumberU64()), Hash: block.Hash()}
	r.nodes.Write(r.tries.Commit(ref))
	r.head = block.Header()
	r.hashes = append(r.hashes, block.Hash())
}

// ancestors refuses the parent: execution is to know it from the header.
func (r *replay) ancestors(n chain.Number) (chain.Hash, error) {
	if int(n) >= len(r.hashes)-1 {
		return chain.Hash{}, fmt.Errorf("asked for the hash of block %d", n)
	}
	return r.hashes[n], nil
}

func (r *replay) execute(block *types.Block) (*evm.Result, error) {
	return r.rules.Execute(block, r.head, r.state, r.ancestors, evm.Checks{Receipts: true, Roots: r.tries})
}

func (r *replay) step(t testing.TB, block *types.Block) *evm.Result {
	t.Helper()
	result, err := r.execute(block)
	if err != nil {
		t.Fatal(err)
	}
	r.commit(t, block, result.Diff)
	return result
}

// flatRoot computes the state root from all accounts and slots, with nothing in
// common with package merkle.
func flatRoot(t testing.TB, state *memview.State) chain.Hash {
	t.Helper()
	accounts := make(map[chain.Hash][]byte)
	for _, a := range state.Diff().Accounts {
		slots := make(map[chain.Hash][]byte)
		for _, s := range a.Slots {
			value, _ := rlp.EncodeToBytes(bytes.TrimLeft(s.Value[:], "\x00"))
			slots[crypto.Keccak256Hash(s.Slot[:])] = value
		}
		account := types.StateAccount{Nonce: a.Account.Nonce, Balance: &a.Account.Balance, Root: hashedRoot(t, slots), CodeHash: a.Account.CodeHash[:]}
		if a.Account.CodeHash == (chain.Hash{}) {
			account.CodeHash = types.EmptyCodeHash[:]
		}
		value, err := rlp.EncodeToBytes(&account)
		if err != nil {
			t.Fatal(err)
		}
		accounts[crypto.Keccak256Hash(a.Address[:])] = value
	}
	return hashedRoot(t, accounts)
}

func hashedRoot(t testing.TB, leaves map[chain.Hash][]byte) chain.Hash {
	t.Helper()
	all := trie.NewEmpty(nil)
	for key, value := range leaves {
		if err := all.Update(key[:], value); err != nil {
			t.Fatal(err)
		}
	}
	return all.Hash()
}

// A testChain is a genesis file and its blocks.
type testChain struct {
	name    string
	genesis []byte
	blocks  []*types.Block
}

func conformance(t testing.TB) testChain {
	t.Helper()
	dir := fixture.Conformance(t)
	genesis, err := os.ReadFile(filepath.Join(dir, "genesis.json"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(dir, "chain.rlp"))
	if err != nil {
		t.Fatal(err)
	}
	c := testChain{name: "conformance", genesis: genesis}
	stream := rlp.NewStream(bytes.NewReader(file), 0)
	for {
		block := new(types.Block)
		err := stream.Decode(block)
		if errors.Is(err, io.EOF) {
			return c
		}
		if err != nil {
			t.Fatal(err)
		}
		c.blocks = append(c.blocks, block)
	}
}

func generated(forks chaingen.Forks, name string, seed uint64, blocks int) testChain {
	genesis, list := chaingen.Generate(seed, blocks, chaingen.Options{Forks: forks})
	return testChain{name: fmt.Sprintf("%s, seed %d", name, seed), genesis: genesis, blocks: list}
}

// generatedChains are made once for all tests.
var generatedChains = sync.OnceValue(func() []testChain {
	return []testChain{
		generated(chaingen.Modern, "modern", 1, 200),
		generated(chaingen.Newest, "newest", 2, 60),
		generated(chaingen.Amsterdam, "amsterdam", 3, 60),
		generated(chaingen.Historic, "historic", 4, 120),
	}
})

func chains(t testing.TB) []testChain {
	t.Helper()
	return append([]testChain{conformance(t)}, generatedChains()...)
}

func encoded(d *chain.Diff) string { return string(chain.AppendDiff(nil, d)) }

// word is a slot or value that holds a number.
func word(n uint64) (w chain.Value) {
	binary.BigEndian.PutUint64(w[24:], n)
	return w
}
