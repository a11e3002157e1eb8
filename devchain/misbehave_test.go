// SPDX-License-Identifier: Apache-2.0

package devchain_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/devchain"
)

func TestRevoke(t *testing.T) {
	run(t, newStore(t, devchain.Genesis()), nil, func(w *world) {
		ctx := w.t.Context()
		revoked, follows := transfer(t, 0, 1, 0, 5), transfer(t, 0, 1, 1, 5)
		other, late := transfer(t, 2, 1, 0, 1), transfer(t, 2, 1, 1, 1)
		w.send(revoked, follows, other)
		w.pass(flashblockTime)
		if err := w.Revoke(ctx, revoked.Hash()); err != nil {
			t.Fatal(err)
		}
		w.send(late)
		w.pass(flashblockTime)
		if want := hashes([]*types.Transaction{revoked, follows, other, late}); !slices.Equal(w.promised, want) {
			t.Errorf("got %v promised, want all %v", w.promised, want)
		}
		w.pass(blockTime)
		sealed := w.sealed[0]
		if got, want := hashes(sealed.Block.Transactions()), hashes([]*types.Transaction{other, late}); !slices.Equal(got, want) {
			t.Errorf("got %v sealed, want %v", got, want)
		}
		if want := hashes([]*types.Transaction{revoked, follows}); !slices.Equal(sealed.Revoked, want) {
			t.Errorf("got %v revoked, want %v", sealed.Revoked, want)
		}
		if _, ok, err := w.Transaction(ctx, revoked.Hash()); ok || err != nil {
			t.Errorf("the revoked transaction waits again, %v", err)
		}
		if _, ok, err := w.Transaction(ctx, follows.Hash()); !ok || err != nil {
			t.Errorf("the one that followed does not wait, %v", err)
		}
		// It follows again when the gap is filled.
		w.send(transfer(t, 0, 3, 0, 1))
		w.pass(flashblockTime)
		if len(w.promised) != 2 || w.promised[1] != follows.Hash() {
			t.Errorf("got %v promised, want the one that followed among them", w.promised)
		}
		for _, hash := range []chain.Hash{revoked.Hash(), other.Hash(), {1}} {
			if err := w.Revoke(ctx, hash); !errors.Is(err, devchain.ErrUnknownTransaction) {
				t.Errorf("revoke %s, which is sealed or lost: got %v", hash, err)
			}
		}
	})
}

func TestRevokeBeforeItIsPreconfirmed(t *testing.T) {
	run(t, newStore(t, devchain.Genesis()), nil, func(w *world) {
		tx := transfer(t, 0, 1, 0, 5)
		w.send(tx)
		if err := w.Revoke(w.t.Context(), tx.Hash()); err != nil {
			t.Fatal(err)
		}
		w.pass(flashblockTime)
		if !slices.Equal(w.promised, []chain.Hash{tx.Hash()}) {
			t.Errorf("got %v promised, want the transaction", w.promised)
		}
		w.pass(blockTime)
		if got := w.sealed[0]; len(got.Block.Transactions()) != 0 || len(got.Revoked) != 1 {
			t.Errorf("got %d transactions sealed, %d revoked, want 0 and 1", len(got.Block.Transactions()), len(got.Revoked))
		}
	})
}

func TestReorg(t *testing.T) {
	run(t, newStore(t, devchain.Genesis()), nil, func(w *world) {
		ctx := w.t.Context()
		var sent []chain.Hash
		for nonce := range uint64(4) { // one in each block, the last one pre-confirmed
			tx := transfer(t, 0, 1, nonce, 1)
			w.send(tx)
			sent = append(sent, tx.Hash())
			if nonce < 3 {
				w.pass(blockTime)
			} else {
				w.pass(flashblockTime)
			}
		}
		var before []chain.Hash
		for _, b := range w.store.blocks {
			before = append(before, b.block.Hash())
		}
		r, err := w.Reorg(ctx, 2)
		if err != nil {
			t.Fatal(err)
		}
		w.pass(0)
		if r.Ancestor.Hash != before[1] || len(r.Removed) != 2 || r.Removed[0].Hash != before[2] || r.Removed[1].Hash != before[3] {
			t.Errorf("got %v and %v taken back", r.Ancestor, r.Removed)
		}
		if len(w.reorgs) != 1 || len(w.sealed) != 3 {
			t.Errorf("got %d reorgs and %d sealed blocks told of, want 1 and the 3 of before", len(w.reorgs), len(w.sealed))
		}
		if w.head().NumberU64() != 3 {
			t.Errorf("got head %d, want 3", w.head().NumberU64())
		}
		for n := 2; n <= 3; n++ {
			if w.store.blocks[n].block.Hash() == before[n] {
				t.Errorf("block %d is the one that was replaced", n)
			}
		}
		if n := len(r.Added[0].Block.Transactions()); n != 0 {
			t.Errorf("got %d transactions in the first replacement, want none", n)
		}
		if got := hashes(r.Added[1].Block.Transactions()); !slices.Equal(got, sent[1:]) {
			t.Errorf("got %v in the second replacement, want %v", got, sent[1:])
		}
		for _, depth := range []int{0, -1, 4, 300} {
			if _, err := w.Reorg(ctx, depth); !errors.Is(err, devchain.ErrDepth) {
				t.Errorf("depth %d: got %v, want ErrDepth", depth, err)
			}
		}
		w.pass(2 * blockTime)
		if w.head().NumberU64() != 5 {
			t.Errorf("got head %d after two more block times, want 5", w.head().NumberU64())
		}
	})
}

// An empty block in place of an empty block, in the same second.
func TestReorgOfEmptyBlocksChangesThem(t *testing.T) {
	noFlashblocks := func(o *devchain.Options) { o.BlockTime, o.FlashblockTime = time.Hour, 0 }
	run(t, newStore(t, devchain.Genesis()), noFlashblocks, func(w *world) {
		ctx := w.t.Context()
		if _, err := w.Mine(ctx); err != nil {
			t.Fatal(err)
		}
		seen := map[chain.Hash]bool{w.head().Hash(): true}
		for range 3 {
			if _, err := w.Reorg(ctx, 1); err != nil {
				t.Fatal(err)
			}
			if seen[w.head().Hash()] {
				t.Error("got a block that was there before")
			}
			seen[w.head().Hash()] = true
		}
	})
}

// Osaka forbids what was allowed when the transaction came. Only the EVM sees
// that, after it has executed others of the same block.
func TestABlockSurvivesWhatTheEVMRefuses(t *testing.T) {
	text := strings.Replace(string(devchain.Genesis()), `"osakaTime": 0`, `"osakaTime": 946684804`, 1) // bubbles begin at 946684800
	run(t, newStore(t, []byte(text)), nil, func(w *world) {
		greedy := sign(t, 0, &types.LegacyTx{Nonce: 1, Gas: 20_000_000, GasPrice: gwei(20), To: &accounts[1].Address})
		w.send(greedy)
		w.pass(3 * blockTime)
		first, other := transfer(t, 0, 1, 0, 9), transfer(t, 2, 1, 0, 1)
		w.send(first, other)
		dropped := make(chan error, 1)
		go func() { dropped <- w.WaitPreconfirmed(w.t.Context(), greedy.Hash()) }()
		w.pass(flashblockTime)
		if want := hashes([]*types.Transaction{first, other}); !slices.Equal(w.promised, want) {
			t.Errorf("got %v promised, want %v", w.promised, want)
		}
		if err := <-dropped; !errors.Is(err, devchain.ErrDropped) || !errors.Is(err, core.ErrGasLimitTooHigh) {
			t.Errorf("got %v, want that it was dropped for its gas", err)
		}
		w.pass(blockTime)
	})
}
