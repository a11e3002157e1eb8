// SPDX-License-Identifier: Apache-2.0

package evm_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/evm"
	"glimpse/internal/chaingen"
	"glimpse/internal/memview"
)

// A faulty view and its ancestors fail one read between them.
type faulty struct {
	memview.Faulty
	ancestors evm.Ancestors
}

func newFaulty(view chain.View, ancestors evm.Ancestors, failAt int) *faulty {
	return &faulty{memview.Faulty{View: view, FailAt: failAt}, ancestors}
}

func (f *faulty) hash(n chain.Number) (chain.Hash, error) {
	if err := f.Read(); err != nil {
		return chain.Hash{}, err
	}
	return f.ancestors(n)
}

// Every read of a block fails once. Whatever the EVM makes of it, nothing but
// ErrStateRead may come out, and the right Diff where no read failed.
func TestEveryFailedReadIsReported(t *testing.T) {
	for _, c := range []testChain{
		generated(chaingen.Modern, "modern", 5, 60),
		generated(chaingen.Amsterdam, "amsterdam", 6, 8),
		generated(chaingen.Historic, "historic", 7, 60),
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newReplay(t, c.genesis)
			faults := 0
			for _, block := range c.blocks {
				if block.NumberU64()%4 == 0 {
					faults += injectFaults(t, r, block)
				}
				r.step(t, block)
			}
			t.Logf("%d failed reads", faults)
			if faults == 0 {
				t.Error("no read failed")
			}
		})
	}
}

func injectFaults(t *testing.T, r *replay, block *types.Block) (faults int) {
	t.Helper()
	checks := evm.Checks{Receipts: true}
	want, err := r.rules.Execute(block, r.head, r.state, r.ancestors, checks)
	if err != nil {
		t.Fatal(err)
	}
	for k := 1; ; k++ {
		f := newFaulty(r.state, r.ancestors, k)
		got, err := r.rules.Execute(block, r.head, f, f.hash, checks)
		if f.Reads < k {
			if err != nil || encoded(got.Diff) != encoded(want.Diff) {
				t.Fatalf("block %d without a fault: got another Diff, or %v", block.NumberU64(), err)
			}
			return k - 1
		}
		if !errors.Is(err, evm.ErrStateRead) || !errors.Is(err, memview.ErrInjected) || got != nil {
			t.Fatalf("block %d, read %d failed: got %v, want ErrStateRead", block.NumberU64(), k, err)
		}
		if invalid := new(evm.InvalidBlockError); errors.As(err, &invalid) {
			t.Fatalf("block %d, read %d failed: got %v, which calls the block invalid", block.NumberU64(), k, err)
		}
	}
}

func TestBlockIsDeadAfterAnError(t *testing.T) {
	w := newWorld(t, cancun())
	good := w.call(mortal, pair(1, 8)...)
	f := newFaulty(w.state, nil, 3)
	b, err := w.rules.Begin(w.header, f, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _, first := b.Apply([]*types.Transaction{good})
	if !errors.Is(first, evm.ErrStateRead) {
		t.Fatalf("got %v, want ErrStateRead", first)
	}
	if _, _, err := b.Apply(nil); err != first {
		t.Errorf("Apply: got %v, want the first error", err)
	}
	if _, _, err := b.Finish(new(types.Body)); err != first {
		t.Errorf("Finish: got %v, want the first error", err)
	}
	if d, err := b.Diff(); err != first || d != nil {
		t.Errorf("Diff: got %v, %v, want the first error", d, err)
	}
}

func TestMissingAncestorIsAReadError(t *testing.T) {
	w := newWorld(t, cancun())
	number := word(200)
	b, err := w.rules.Begin(w.header, w.state, func(n chain.Number) (chain.Hash, error) {
		return chain.Hash{}, fmt.Errorf("block %d: %w", n, memview.ErrInjected)
	})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = b.Apply([]*types.Transaction{w.call(hashes, number[:]...)})
	if !errors.Is(err, evm.ErrStateRead) || !errors.Is(err, memview.ErrInjected) {
		t.Errorf("got %v, want ErrStateRead", err)
	}
}
