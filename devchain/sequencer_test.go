// SPDX-License-Identifier: Apache-2.0

package devchain_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/devchain"
	"glimpse/evm"
)

func TestDeploymentAndCallAreAnnouncedWithinOneInterval(t *testing.T) {
	run(t, newStore(t, devchain.Genesis()), nil, func(w *world) {
		w.pass(30 * time.Millisecond)
		deploy, addr := deployment(t, 0, 0)
		w.send(deploy, call(t, 0, 1, addr, storing(1, 42)))
		before, _ := w.pending().Account(addr)
		w.pass(flashblockTime)
		after, _ := w.pending().Account(addr)
		value, _ := w.pending().Slot(addr, chain.Slot{31: 1})
		if before.Exists || after.CodeHash == (chain.Hash{}) || value != (chain.Value{31: 42}) {
			t.Errorf("got %+v before and %+v, slot %s after one interval", before, after, value)
		}
		if w.head().NumberU64() != 0 {
			t.Errorf("got block %d sealed already", w.head().NumberU64())
		}
		w.pass(blockTime)
		if got := hashes(w.head().Transactions()); !slices.Equal(got, []chain.Hash{deploy.Hash(), w.head().Transactions()[1].Hash()}) || w.head().NumberU64() != 1 {
			t.Errorf("got block %d with %v, want 1 with both", w.head().NumberU64(), got)
		}
		if value, _ := w.store.last().state.Slot(addr, chain.Slot{31: 1}); value != (chain.Value{31: 42}) {
			t.Errorf("got slot %s of the sealed block, want 42", value)
		}
	})
}

func TestTenFlashblocksMakeABlock(t *testing.T) {
	run(t, newStore(t, devchain.Genesis()), nil, func(w *world) {
		begin := w.times[0]
		w.pass(3*blockTime + time.Millisecond)
		if len(w.sealed) != 3 || len(w.flashblocks) != 31 {
			t.Fatalf("got %d blocks, %d flashblocks after 6 s, want 3 and 31", len(w.sealed), len(w.flashblocks))
		}
		for i, f := range w.flashblocks {
			if want := begin.Add(time.Duration(i) * flashblockTime); !w.times[i].Equal(want) || f.Index != uint64(i%10) {
				t.Errorf("flashblock %d: got index %d at %v, want %d at %v", i, f.Index, w.times[i], i%10, want)
			}
		}
		for i, s := range w.sealed {
			h := s.Block.Header()
			if s.Flashblocks != 10 || h.Time != uint64(begin.Unix())+uint64(2*i) || h.GasLimit != 60_000_000 {
				t.Errorf("got block %v of %d flashblocks, time %d, gas limit %d", h.Number, s.Flashblocks, h.Time, h.GasLimit)
			}
		}
	})
}

func TestSafeAndFinalizedFollow(t *testing.T) {
	run(t, newStore(t, devchain.Genesis()), nil, func(w *world) {
		for head, want := range [][2]chain.Number{1: {0, 0}, 2: {0, 0}, 3: {1, 0}, 5: {3, 1}, 6: {4, 2}} {
			if len(w.sealed) < head {
				w.pass(time.Duration(head-len(w.sealed)) * blockTime)
			}
			if want != [2]chain.Number{} && [2]chain.Number{w.store.safe.Number, w.store.finalized.Number} != want {
				t.Errorf("head %d: got safe %d, finalized %d, want %v", head, w.store.safe.Number, w.store.finalized.Number, want)
			}
		}
	})
}

func TestEveryTypeOfTransaction(t *testing.T) {
	blob := sign(t, 3, blobData(t, 0)) // its proofs are made outside of the bubble
	run(t, newStore(t, devchain.Genesis()), nil, func(w *world) {
		deploy, addr := deployment(t, 0, 0)
		w.send(deploy, call(t, 0, 1, addr, storing(1, 1)), transfer(t, 1, 2, 0, 1), blob)
		w.pass(flashblockTime)
		w.send(delegation(t, 4, 0, 5, 0, addr))
		w.pass(blockTime)
		seen := make(map[uint8]bool)
		for i, tx := range w.sealed[0].Block.Transactions() {
			seen[tx.Type()] = true
			if r := w.sealed[0].Receipts[i]; r.Status != types.ReceiptStatusSuccessful || r.BlockHash != w.sealed[0].Block.Hash() {
				t.Errorf("type %d: got status %d, block hash %s", tx.Type(), r.Status, r.BlockHash)
			}
			if tx.BlobTxSidecar() != nil {
				t.Error("got blobs in a sealed block")
			}
		}
		if len(seen) != 5 {
			t.Errorf("got types %v, want all five", seen)
		}
		if used := w.sealed[0].Block.BlobGasUsed(); used == nil || *used != blob.BlobGas() {
			t.Errorf("got blob gas %v, want %d", used, blob.BlobGas())
		}
		delegated, _ := w.store.last().state.Account(accounts[5].Address)
		code, err := w.store.last().state.Code(delegated.CodeHash)
		if to, ok := types.ParseDelegation(code); err != nil || !ok || to != addr {
			t.Errorf("got code %x of the account that delegated", code)
		}
		value, _ := w.store.last().state.Slot(accounts[5].Address, chain.Slot{31: 3})
		if value != (chain.Value{31: 4}) {
			t.Errorf("got slot %s of the account that delegated, want 4", value)
		}
	})
}

func TestOrderIsByTipThenArrivalThenNonce(t *testing.T) {
	run(t, newStore(t, devchain.Genesis()), nil, func(w *world) {
		low, high := transfer(t, 0, 9, 0, 1), transfer(t, 1, 9, 0, 5)
		same, poor, rich := transfer(t, 2, 9, 0, 1), transfer(t, 3, 9, 0, 0), transfer(t, 3, 9, 1, 50)
		w.send(low, rich, poor, same, high)
		w.pass(flashblockTime)
		got := hashes(w.flashblocks[len(w.flashblocks)-1].Transactions)
		if want := hashes([]*types.Transaction{high, low, same, poor, rich}); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestOnlySealingEvery200Milliseconds(t *testing.T) {
	noFlashblocks := func(o *devchain.Options) { o.BlockTime, o.FlashblockTime = 200*time.Millisecond, 0 }
	run(t, newStore(t, devchain.Genesis()), noFlashblocks, func(w *world) {
		w.send(transfer(t, 0, 1, 0, 1))
		if err := w.WaitPreconfirmed(w.t.Context(), transfer(t, 0, 1, 0, 1).Hash()); err != nil {
			t.Errorf("wait: %v", err)
		}
		if len(w.sealed) != 1 || len(w.sealed[0].Block.Transactions()) != 1 {
			t.Fatalf("got %d blocks when the transaction was there, want 1 with it", len(w.sealed))
		}
		w.pass(2 * time.Second)
		if len(w.sealed) != 11 || len(w.flashblocks) != 0 {
			t.Fatalf("got %d blocks, %d flashblocks after 2.2 s, want 11 and none", len(w.sealed), len(w.flashblocks))
		}
		for i := range w.sealed[1:] {
			if before, after := w.sealed[i].Block.Time(), w.sealed[i+1].Block.Time(); after != before+1 {
				t.Errorf("got blocks at %d and %d, want one second apart", before, after)
			}
		}
	})
}

func TestPauseMineResume(t *testing.T) {
	run(t, newStore(t, devchain.Genesis()), nil, func(w *world) {
		ctx := w.t.Context()
		if err := w.Pause(ctx); err != nil {
			t.Fatal(err)
		}
		tx := transfer(t, 0, 1, 0, 1)
		w.send(tx)
		w.pass(5 * blockTime)
		if len(w.sealed) != 0 || len(w.flashblocks) != 51 {
			t.Errorf("got %d blocks, %d flashblocks while paused, want none and 51", len(w.sealed), len(w.flashblocks))
		}
		late := transfer(t, 0, 1, 1, 1)
		w.send(late)
		sealed, err := w.Mine(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := hashes(sealed.Block.Transactions()), hashes([]*types.Transaction{tx, late}); !slices.Equal(got, want) {
			t.Errorf("got %v mined, want %v", got, want)
		}
		w.pass(2 * blockTime)
		if len(w.sealed) != 1 {
			t.Errorf("got %d blocks, want none but the one asked for", len(w.sealed))
		}
		if err := w.Resume(ctx); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Millisecond)
		if len(w.sealed) != 2 {
			t.Errorf("got %d blocks after resuming, want the one that was due", len(w.sealed))
		}
		w.pass(blockTime)
		if len(w.sealed) != 3 {
			t.Errorf("got %d blocks a block time later, want 3", len(w.sealed))
		}
	})
}

func TestRestartGoesOnFromTheHead(t *testing.T) {
	store := newStore(t, devchain.Genesis())
	var head *types.Block
	run(t, store, nil, func(w *world) {
		w.send(transfer(t, 0, 1, 0, 1))
		w.pass(2*blockTime + time.Second)
		head = w.head()
	})
	run(t, store, nil, func(w *world) {
		nonce, err := w.NextNonce(w.t.Context(), accounts[0].Address)
		if nonce != 1 || err != nil {
			t.Errorf("got nonce %d, %v, want 1", nonce, err)
		}
		w.send(transfer(t, 0, 1, 1, 1))
		w.pass(blockTime)
		if w.head().ParentHash() != head.Hash() || len(w.head().Transactions()) != 1 {
			t.Errorf("got block %d on %s, want on %s", w.head().NumberU64(), w.head().ParentHash(), head.Hash())
		}
	})
}

func TestWaitPreconfirmed(t *testing.T) {
	run(t, newStore(t, devchain.Genesis()), nil, func(w *world) {
		ctx := w.t.Context()
		tx, gapped := transfer(t, 0, 1, 0, 1), transfer(t, 1, 0, 5, 1)
		w.send(tx, gapped)
		before := time.Now()
		if err := w.WaitPreconfirmed(ctx, tx.Hash()); err != nil || time.Since(before) > flashblockTime {
			t.Errorf("got %v after %v, want nil within an interval", err, time.Since(before))
		}
		w.pass(3 * blockTime)
		if err := w.WaitPreconfirmed(ctx, tx.Hash()); err != nil {
			t.Errorf("sealed before: got %v, want nil", err)
		}
		if err := w.WaitPreconfirmed(ctx, chain.Hash{1}); !errors.Is(err, devchain.ErrUnknownTransaction) {
			t.Errorf("unknown: got %v, want ErrUnknownTransaction", err)
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := w.WaitPreconfirmed(short, gapped.Hash()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("gapped: got %v, want the deadline's error", err)
		}
		replaced := make(chan error, 1)
		go func() { replaced <- w.WaitPreconfirmed(ctx, gapped.Hash()) }()
		synctest.Wait()
		w.send(transfer(t, 1, 0, 5, 200))
		if err := <-replaced; !errors.Is(err, devchain.ErrDropped) {
			t.Errorf("replaced: got %v, want ErrDropped", err)
		}
	})
}

func TestAFailingStoreEndsTheChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, devchain.Genesis())
		w := start(t, store, nil)
		store.failCommit = errors.New("disk full")
		w.pass(blockTime)
		if err := w.Send(w.t.Context(), transfer(t, 0, 1, 0, 1)); !errors.Is(err, devchain.ErrStopped) {
			t.Errorf("got %v, want ErrStopped", err)
		}
		if err := w.stop(); !errors.Is(err, store.failCommit) {
			t.Errorf("got %v from Run, want that the disk is full", err)
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	store := newStore(t, devchain.Genesis())
	good := devchain.Options{Rules: store.rules, Store: store, Roots: store, BlockTime: time.Second}
	if _, err := devchain.New(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*devchain.Options){
		"no store":                          func(o *devchain.Options) { o.Store = nil },
		"no block time":                     func(o *devchain.Options) { o.BlockTime = 0 },
		"flashblocks slower than blocks":    func(o *devchain.Options) { o.FlashblockTime = time.Second },
		"a finalized block ahead of a safe": func(o *devchain.Options) { o.SafeLag = 1 },
	} {
		o := good
		change(&o)
		if _, err := devchain.New(o); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

func TestProofOfWorkIsRefused(t *testing.T) {
	store := newStore(t, []byte(`{"config":{"chainId":1},"difficulty":"0x1","gasLimit":"0x1000000","alloc":{}}`))
	_, err := devchain.New(devchain.Options{Rules: store.rules, Store: store, Roots: store, BlockTime: time.Second})
	if !errors.Is(err, evm.ErrUnsupported) {
		t.Errorf("got %v, want ErrUnsupported", err)
	}
}

func TestManyCallersAtOnce(t *testing.T) {
	run(t, newStore(t, devchain.Genesis()), nil, func(w *world) {
		const each = 20
		var callers sync.WaitGroup
		for from := range accounts {
			callers.Go(func() {
				for nonce := range uint64(each) {
					tx := transfer(t, from, 1, nonce, int64(from))
					if err := w.Send(w.t.Context(), tx); err != nil {
						t.Errorf("send: %v", err)
					}
					if next, err := w.NextNonce(w.t.Context(), accounts[from].Address); next != nonce+1 || err != nil {
						t.Errorf("got nonce %d, %v, want %d", next, err, nonce+1)
					}
					if err := w.WaitPreconfirmed(w.t.Context(), tx.Hash()); err != nil {
						t.Errorf("wait: %v", err)
					}
				}
			})
		}
		callers.Wait()
		w.pass(blockTime)
		total := 0
		for _, s := range w.sealed {
			total += len(s.Block.Transactions())
		}
		if total != each*len(accounts) {
			t.Errorf("got %d transactions sealed, want %d", total, each*len(accounts))
		}
	})
}

func TestWaitingInVainTakesNoRoom(t *testing.T) {
	run(t, newStore(t, devchain.Genesis()), nil, func(w *world) {
		gapped := transfer(t, 0, 1, 1, 1)
		w.send(gapped)
		for range 5000 { // more than may wait at once
			ctx, cancel := context.WithTimeout(w.t.Context(), time.Millisecond)
			err := w.WaitPreconfirmed(ctx, gapped.Hash())
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("got %v, want the deadline's error", err)
			}
		}
	})
}
