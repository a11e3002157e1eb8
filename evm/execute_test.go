// SPDX-License-Identifier: Apache-2.0

package evm_test

import (
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
)

// Every outcome is compared with the header, and memview refuses a Diff that
// lists something unchanged, so this is minimality and completeness at once.
func TestExecuteAgreesWithEveryHeader(t *testing.T) {
	for _, c := range chains(t) {
		t.Run(c.name, func(t *testing.T) {
			r := newReplay(t, c.genesis)
			wipes := 0
			for _, block := range c.blocks {
				result := r.step(t, block)
				if _, err := chain.DecodeDiff(chain.AppendDiff(nil, result.Diff)); err != nil {
					t.Fatalf("block %d: %v", block.NumberU64(), err)
				}
				for _, a := range result.Diff.Accounts {
					if a.Wiped {
						wipes++
					}
				}
				if n := block.NumberU64(); n%8 == 0 || int(n) == len(c.blocks) {
					if got := flatRoot(t, r.state); got != block.Root() {
						t.Fatalf("got root %s of the flat state at block %d, want %s", got, n, block.Root())
					}
				}
			}
			t.Logf("%d blocks, %d wipes", len(c.blocks), wipes)
		})
	}
}

// The same block, one transaction at a time: the parts applied one after the
// other, and the whole, lead to the same state as Execute.
func TestPartsAddUpToTheWholeBlock(t *testing.T) {
	for _, c := range chains(t) {
		t.Run(c.name, func(t *testing.T) {
			r := newReplay(t, c.genesis)
			parts := r.state.Clone()
			for _, block := range c.blocks {
				b, err := r.rules.Begin(block.Header(), r.state, r.ancestors)
				if err != nil {
					t.Fatal(err)
				}
				apply := func(d *chain.Diff, err error) {
					t.Helper()
					if err == nil {
						err = parts.Apply(d)
					}
					if err != nil {
						t.Fatalf("block %d: %v", block.NumberU64(), err)
					}
				}
				for i := range block.Transactions() {
					d, receipts, err := b.Apply(block.Transactions()[i : i+1])
					if err == nil && len(receipts) != 1 {
						t.Fatalf("got %d receipts of one transaction", len(receipts))
					}
					apply(d, err)
				}
				d, outcome, err := b.Finish(block.Body())
				apply(d, err)
				if outcome.GasUsed != block.GasUsed() {
					t.Fatalf("block %d: got gas used %d, want %d", block.NumberU64(), outcome.GasUsed, block.GasUsed())
				}
				whole, err := b.Diff()
				if err != nil {
					t.Fatal(err)
				}
				result := r.step(t, block)
				if encoded(whole) != encoded(result.Diff) {
					t.Fatalf("block %d: got another Diff in parts than at once:\n%+v\n%+v", block.NumberU64(), whole, result.Diff)
				}
				if encoded(parts.Diff()) != encoded(r.state.Diff()) {
					t.Fatalf("block %d: the parts lead to another state", block.NumberU64())
				}
			}
		})
	}
}

// A whole Diff is what the block changed so far, not only at its end.
func TestDiffBetweenParts(t *testing.T) {
	c := conformance(t)
	r := newReplay(t, c.genesis)
	for _, block := range c.blocks {
		b, err := r.rules.Begin(block.Header(), r.state, r.ancestors)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Diff(); err != nil {
			t.Fatal(err)
		}
		sofar := r.state.Clone()
		for _, tx := range block.Transactions() {
			part, _, err := b.Apply([]*types.Transaction{tx})
			if err != nil {
				t.Fatal(err)
			}
			if err := sofar.Apply(part); err != nil {
				t.Fatal(err)
			}
			whole, err := b.Diff()
			if err != nil {
				t.Fatal(err)
			}
			other := r.state.Clone()
			if err := other.Apply(whole); err != nil {
				t.Fatal(err)
			}
			if encoded(sofar.Diff()) != encoded(other.Diff()) {
				t.Fatalf("block %d: the whole is not what the parts add up to", block.NumberU64())
			}
		}
		r.step(t, block)
	}
}
