// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/devchain"
	"glimpse/evm"
	"glimpse/follow/origin"
	"glimpse/internal/memview"
)

// A noting View notes which slots were read.
type noting struct {
	chain.View
	read []origin.Key
}

func (n *noting) Slot(a chain.Address, s chain.Slot) (chain.Value, error) {
	n.read = append(n.read, origin.Key{Address: a, Slot: s})
	return n.View.Slot(a, s)
}

// What the beginning of the blocks to come reads is read ahead.
func TestSystemSlotsAreThoseThatBlocksBeginWith(t *testing.T) {
	genesis, err := evm.ParseGenesis(devchain.Genesis())
	if err != nil {
		t.Fatal(err)
	}
	state := memview.New()
	if err := state.Apply(genesis.Diff); err != nil {
		t.Fatal(err)
	}
	parent := genesis.Block.Header()
	parent.Number, parent.Time = big.NewInt(8189), 8190*7-1 // what follows goes over the end of both rings
	ahead := systemSlots(parent)
	for n := range int64(blocksAhead) {
		header := types.CopyHeader(parent)
		header.Number, header.Time = big.NewInt(parent.Number.Int64()+1+n), parent.Time+uint64(2*(n+1))
		header.ParentHash, header.ParentBeaconRoot = chain.Hash{1}, &chain.Hash{2}
		view := &noting{View: state}
		block, err := genesis.Rules.Begin(header, view, func(chain.Number) (chain.Hash, error) { return chain.Hash{}, errors.New("not asked for") })
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := block.Apply(nil); err != nil {
			t.Fatal(err)
		}
		if len(view.read) != 3 {
			t.Errorf("block %d began with %d reads, want 3", header.Number, len(view.read))
		}
		for _, k := range view.read {
			if !slices.Contains(ahead, k) {
				t.Errorf("block %d reads slot %s of %s, which was not read ahead", header.Number, k.Slot, k.Address)
			}
		}
	}
}
