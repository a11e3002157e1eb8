// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"

	"glimpse/chain"
	"glimpse/evm"
	"glimpse/internal/chaingen"
	"glimpse/internal/memview"
)

// A world is a generated chain with its states, as glimpse executes it.
type world struct {
	genesisText []byte
	rules       *evm.Rules
	blocks      []*types.Block // by number
	results     []*evm.Result  // by number; nil for genesis
	states      []*memview.State
}

func newWorld(t testing.TB, seed uint64, n int, o chaingen.Options) *world {
	t.Helper()
	text, blocks := chaingen.Generate(seed, n, o)
	return worldOf(t, text, blocks)
}

// worldOf executes blocks.
func worldOf(t testing.TB, text []byte, blocks []*types.Block) *world {
	t.Helper()
	genesis, err := evm.ParseGenesis(text)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{genesisText: text, rules: genesis.Rules, blocks: append([]*types.Block{genesis.Block}, blocks...)}
	state := memview.New()
	if err := state.Apply(genesis.Diff); err != nil {
		t.Fatal(err)
	}
	w.states, w.results = append(w.states, state), append(w.results, nil)
	ancestors := func(n chain.Number) (chain.Hash, error) { return w.blocks[n].Hash(), nil }
	for i, b := range blocks {
		result, err := w.rules.Execute(b, w.blocks[i].Header(), state, ancestors, evm.Checks{Receipts: true})
		if err != nil {
			t.Fatal(err)
		}
		state = state.Clone()
		if err := state.Apply(result.Diff); err != nil {
			t.Fatal(err)
		}
		w.states, w.results = append(w.states, state), append(w.results, result)
	}
	return w
}

func (w *world) ref(n int) chain.Ref {
	return chain.Ref{Number: chain.Number(n), Hash: w.blocks[n].Hash()}
}

// leadsTo applies a diff to the state of block n-1 and compares the outcome
// with that of block n.
func (w *world) leadsTo(n int, diff *chain.Diff) error {
	if _, err := chain.DecodeDiff(chain.AppendDiff(nil, diff)); err != nil {
		return fmt.Errorf("not canonical: %w", err)
	}
	state := w.states[n-1].Clone()
	if err := state.Apply(diff); err != nil {
		return err
	}
	got, want := state.Diff(), w.states[n].Diff()
	got.Codes, want.Codes = nil, nil // those of accounts are compared by their hash
	if bytes.Equal(chain.AppendDiff(nil, got), chain.AppendDiff(nil, want)) {
		return nil
	}
	for _, d := range w.results[n].Diff.Accounts {
		var found *chain.AccountDiff
		for i := range diff.Accounts {
			if diff.Accounts[i].Address == d.Address {
				found = &diff.Accounts[i]
			}
		}
		if found == nil || !reflect.DeepEqual(*found, d) {
			return fmt.Errorf("account %s:\n got %+v\nwant %+v", d.Address, found, d)
		}
	}
	return fmt.Errorf("changes more than the block: got %d accounts, want %d", len(diff.Accounts), len(w.results[n].Diff.Accounts))
}

// rootOf is the root of a list of encodings.
func rootOf(list [][]byte) chain.Hash {
	return types.DeriveSha(encodings(list), trie.NewStackTrie(nil))
}

type encodings [][]byte

func (e encodings) Len() int                           { return len(e) }
func (e encodings) EncodeIndex(i int, w *bytes.Buffer) { w.Write(e[i]) }
