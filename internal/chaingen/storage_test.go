// SPDX-License-Identifier: Apache-2.0

package chaingen_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/internal/chaingen"
)

type storageChain struct {
	genesis []byte
	blocks  []*types.Block
	writes  []chaingen.Write
}

func storage(t *testing.T, seed uint64, o chaingen.StorageOptions) (c storageChain) {
	t.Helper()
	var err error
	c.genesis, err = chaingen.GenerateStorage(seed, o, func(b *types.Block, writes []chaingen.Write) error {
		c.blocks, c.writes = append(c.blocks, b), append(c.writes, writes...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var storageShape = chaingen.StorageOptions{Contracts: 30, Slots: 2000, Blocks: 300, Rewrites: 12, Large: 3}

func TestGoEthereumHasWhatTheStorageChainSays(t *testing.T) {
	c := storage(t, 1, storageShape)
	genesis := new(core.Genesis)
	if err := json.Unmarshal(c.genesis, genesis); err != nil {
		t.Fatal(err)
	}
	bc, err := core.NewBlockChain(rawdb.NewMemoryDatabase(), genesis, beacon.New(ethash.NewFaker()), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer bc.Stop()
	if n, err := bc.InsertChain(c.blocks); err != nil {
		t.Fatalf("block %d: %v", n+1, err)
	}
	state, err := bc.State()
	if err != nil {
		t.Fatal(err)
	}
	type slot struct {
		contract int
		key      common.Hash
	}
	values := make(map[slot]common.Hash)
	for _, w := range c.writes {
		values[slot{w.Contract, w.Slot}] = w.Value
	}
	if len(values) != storageShape.Slots || len(c.blocks) != storageShape.Blocks {
		t.Errorf("got %d slots in %d blocks, want %d in %d", len(values), len(c.blocks), storageShape.Slots, storageShape.Blocks)
	}
	slots := make([]int, storageShape.Contracts)
	for s, want := range values {
		slots[s.contract]++
		if got := state.GetState(chaingen.StorageContract(s.contract), s.key); got != want {
			t.Errorf("contract %d slot %x: got %x, want %x", s.contract, s.key, got, want)
		}
	}
	if slots[0] < 5*slots[9] || slots[9] < slots[29] || slots[29] == 0 {
		t.Errorf("got %v slots, want an nth of the first for the nth", slots)
	}
	one, two := state.GetCode(chaingen.StorageContract(0)), state.GetCode(chaingen.StorageContract(1))
	if len(one) != chaingen.LargeCode || len(two) != chaingen.LargeCode || bytes.Equal(one, two) {
		t.Errorf("got codes of %d and %d bytes, want two of %d", len(one), len(two), chaingen.LargeCode)
	}
}

func TestSameSeedSameStorageChain(t *testing.T) {
	shape := chaingen.StorageOptions{Contracts: 10, Slots: 200, Blocks: 20, Rewrites: 10, Large: 1}
	one, two, other := storage(t, 2, shape), storage(t, 2, shape), storage(t, 3, shape)
	last := shape.Blocks - 1
	if !bytes.Equal(one.genesis, two.genesis) || one.blocks[last].Hash() != two.blocks[last].Hash() {
		t.Error("got two chains of one seed, want the same")
	}
	if one.blocks[last].Hash() == other.blocks[last].Hash() {
		t.Error("got one chain of two seeds, want different ones")
	}
}

func TestRewritesCanGoRound(t *testing.T) {
	c := storage(t, 4, chaingen.StorageOptions{Contracts: 1, Slots: 20, Blocks: 10, Rewrites: 20, Even: true})
	set := make([]map[common.Hash]bool, 11)
	for _, w := range c.writes {
		if set[w.Block] == nil {
			set[w.Block] = make(map[common.Hash]bool)
		}
		set[w.Block][w.Slot] = true
	}
	for n, slots := range set[1:] {
		if len(slots) != 20 {
			t.Errorf("block %d sets %d slots, want all 20", n+1, len(slots))
		}
	}
}

func TestStorageChainsThatCannotBeAreRefused(t *testing.T) {
	for name, o := range map[string]chaingen.StorageOptions{
		"no contracts":                     {Slots: 1, Blocks: 1},
		"fewer slots than contracts":       {Contracts: 2, Slots: 1, Blocks: 1},
		"no blocks":                        {Contracts: 1, Slots: 1},
		"more large ones than there are":   {Contracts: 1, Slots: 1, Blocks: 1, Large: 2},
		"more slots than a block has room": {Contracts: 1, Slots: 100_000, Blocks: 10},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := chaingen.GenerateStorage(1, o, func(*types.Block, []chaingen.Write) error { return nil }); err == nil {
				t.Error("got no error")
			}
		})
	}
}

func TestAnErrorEndsTheGeneration(t *testing.T) {
	want, blocks := errors.New("full"), 0
	_, err := chaingen.GenerateStorage(1, storageShape, func(*types.Block, []chaingen.Write) error { blocks++; return want })
	if !errors.Is(err, want) || blocks != 1 {
		t.Errorf("got %v after %d blocks, want %v after the first", err, blocks, want)
	}
}
