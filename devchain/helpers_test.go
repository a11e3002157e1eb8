// SPDX-License-Identifier: Apache-2.0

package devchain_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"

	"glimpse/chain"
	"glimpse/devchain"
	"glimpse/evm"
	"glimpse/internal/memview"
	"glimpse/merkle"
	"glimpse/merkle/merkletest"
)

// A memStore keeps a chain in memory, with the state and the tries of every
// block, so that it can go back.
type memStore struct {
	t      testing.TB
	rules  *evm.Rules
	blocks []storedBlock
	tries  *merkle.State
	opened int // Heads that were not released

	safe, finalized chain.Ref
	failCommit      error // what Commit returns from now on, nil for none
}

type storedBlock struct {
	block *types.Block
	state *memview.State
	nodes merkletest.Nodes
}

func newStore(t testing.TB, text []byte) *memStore {
	t.Helper()
	genesis, err := evm.ParseGenesis(text)
	if err != nil {
		t.Fatal(err)
	}
	s := &memStore{t: t, rules: genesis.Rules}
	if s.tries, err = merkle.Open(make(merkletest.Nodes), 1<<20); err != nil {
		t.Fatal(err)
	}
	root, err := s.tries.Apply(genesis.Diff)
	if err != nil {
		t.Fatal(err)
	}
	if root != genesis.Block.Root() {
		t.Fatalf("got genesis root %s, want %s", root, genesis.Block.Root())
	}
	s.push(genesis.Block, genesis.Diff)
	return s
}

func (s *memStore) last() storedBlock { return s.blocks[len(s.blocks)-1] }

func (s *memStore) push(block *types.Block, diff *chain.Diff) {
	next := storedBlock{block: block, state: memview.New(), nodes: make(merkletest.Nodes)}
	if len(s.blocks) > 0 {
		next.state, next.nodes = s.last().state.Clone(), maps.Clone(s.last().nodes)
	}
	if err := next.state.Apply(diff); err != nil {
		s.t.Errorf("block %d: %v", block.NumberU64(), err)
	}
	next.nodes.Write(s.tries.Commit(chain.Ref{Number: chain.Number(block.NumberU64()), Hash: block.Hash()}))
	s.blocks = append(s.blocks, next)
	s.reopen()
}

// reopen reads the tries of the last block.
func (s *memStore) reopen() {
	tries, err := merkle.Open(s.last().nodes, 1<<20)
	if err != nil {
		s.t.Error(err)
		return
	}
	s.tries = tries
}

func (s *memStore) Apply(d *chain.Diff) (chain.Hash, error) { return s.tries.Apply(d) }

func (s *memStore) Head() (devchain.Head, error) {
	if s.opened != 0 {
		s.t.Error("head opened before the last one was released")
	}
	s.opened++
	last := s.last()
	ref := chain.Ref{Number: chain.Number(last.block.NumberU64()), Hash: last.block.Hash()}
	return devchain.Head{Ref: ref, View: last.state, Release: func() { s.opened-- }}, nil
}

func (s *memStore) Hash(n chain.Number) (chain.Hash, error) { return s.blocks[n].block.Hash(), nil }

func (s *memStore) Header(n chain.Number) ([]byte, error) {
	return rlp.EncodeToBytes(s.blocks[n].block.Header())
}

func (s *memStore) Body(n chain.Number) ([]byte, error) {
	return rlp.EncodeToBytes(s.blocks[n].block.Body())
}

func (s *memStore) Commit(sealed *devchain.Sealed) error {
	if s.failCommit != nil {
		return s.failCommit
	}
	if s.opened != 0 {
		s.t.Error("commit with the head open")
	}
	s.push(sealed.Block, sealed.Diff)
	return nil
}

func (s *memStore) Unwind(n chain.Number) error {
	if s.opened != 0 {
		s.t.Error("unwind with the head open")
	}
	s.blocks = s.blocks[:n+1]
	s.reopen()
	return nil
}

func (s *memStore) SetTags(safe, finalized chain.Ref) error {
	for _, tag := range []chain.Ref{safe, finalized} {
		if int(tag.Number) >= len(s.blocks) || s.blocks[tag.Number].block.Hash() != tag.Hash {
			s.t.Errorf("tag %s is not on the chain", tag)
		}
	}
	s.safe, s.finalized = safe, finalized
	return nil
}

// A follower is a Listener that executes what is announced on its own, as a
// consumer of the feed would, and compares.
type follower struct {
	t     testing.TB
	store *memStore

	flashblocks []*devchain.Flashblock
	sealed      []*devchain.Sealed
	reorgs      []*devchain.Reorganisation
	times       []time.Time // of flashblocks

	// The block that is being announced.
	block    *evm.Block
	state    *memview.State
	promised []chain.Hash
	receipts types.Receipts
}

func (f *follower) Preconfirmed(b *devchain.Flashblock) {
	if b.Index == 0 {
		f.begin(b)
	} else if last := f.flashblocks[len(f.flashblocks)-1]; last.Index+1 != b.Index || last.PayloadID != b.PayloadID {
		f.t.Errorf("got flashblock %d of %x after %d of %x", b.Index, b.PayloadID, last.Index, last.PayloadID)
	}
	f.flashblocks = append(f.flashblocks, b)
	f.times = append(f.times, time.Now())
	diff, receipts, err := f.block.Apply(b.Transactions)
	if err != nil {
		f.t.Errorf("flashblock %d: %v", b.Index, err)
		return
	}
	if err := f.state.Apply(diff); err != nil {
		f.t.Errorf("flashblock %d: %v", b.Index, err)
	}
	f.compare(b, diff, receipts)
}

func (f *follower) begin(b *devchain.Flashblock) {
	parent := f.store.last()
	if b.Header.ParentHash != parent.block.Hash() {
		f.t.Errorf("got a flashblock on %s, want on the head %s", b.Header.ParentHash, parent.block.Hash())
	}
	f.state, f.promised, f.receipts = parent.state.Clone(), nil, nil
	var err error
	if f.block, err = f.store.rules.Begin(b.Header, parent.state, f.store.Hash); err != nil {
		f.t.Errorf("begin block %v: %v", b.Header.Number, err)
	}
}

// compare checks what a flashblock says about itself.
func (f *follower) compare(b *devchain.Flashblock, diff *chain.Diff, receipts types.Receipts) {
	f.receipts = append(f.receipts, receipts...)
	gas := uint64(0)
	for _, r := range f.receipts {
		gas += r.GasUsed
	}
	if got := types.DeriveSha(f.receipts, trie.NewStackTrie(nil)); got != b.Header.ReceiptHash || gas != b.Header.GasUsed {
		f.t.Errorf("flashblock %d: announced receipts %s and gas %d, executed %s and %d", b.Index, b.Header.ReceiptHash, b.Header.GasUsed, got, gas)
	}
	if types.MergeBloom(f.receipts) != b.Header.Bloom {
		f.t.Errorf("flashblock %d: announced another bloom than executed", b.Index)
	}
	if len(b.Receipts) != len(b.Transactions) {
		f.t.Errorf("got %d receipts of %d transactions", len(b.Receipts), len(b.Transactions))
	}
	for _, a := range diff.Accounts {
		account, _ := f.state.Account(a.Address) // never fails
		if got := b.Balances[a.Address]; got != account.Balance {
			f.t.Errorf("flashblock %d: announced balance %s of %s, executed %s", b.Index, &got, a.Address, &account.Balance)
		}
	}
	if b.Index > 0 && len(b.Transactions) == 0 && len(b.Balances) != 0 {
		f.t.Errorf("got %d balances in an empty flashblock", len(b.Balances))
	}
	for _, tx := range b.Transactions {
		f.promised = append(f.promised, tx.Hash())
	}
}

func (f *follower) Sealed(s *devchain.Sealed) {
	f.sealed = append(f.sealed, s)
	var got []chain.Hash
	for _, tx := range s.Block.Transactions() {
		got = append(got, tx.Hash())
	}
	if s.Flashblocks > 0 && len(s.Revoked) == 0 && fmt.Sprint(got) != fmt.Sprint(f.promised) {
		f.t.Errorf("block %d: sealed %v, announced %v", s.Block.NumberU64(), got, f.promised)
	}
}

func (f *follower) Reorganised(r *devchain.Reorganisation) { f.reorgs = append(f.reorgs, r) }

// A world is a running chain in a bubble of virtual time.
type world struct {
	t     *testing.T
	store *memStore
	*follower
	*devchain.Sequencer
	stop func() error
}

const (
	blockTime      = 2 * time.Second
	flashblockTime = 200 * time.Millisecond
)

// run starts a chain on a store and calls do with it. Everything has ended when
// run returns.
func run(t *testing.T, store *memStore, change func(*devchain.Options), do func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store.t = t
		w := start(t, store, change)
		do(w)
		if err := w.stop(); err != nil {
			t.Errorf("got %v from Run, want nil", err)
		}
		if store.opened != 0 {
			t.Errorf("got %d heads still open", store.opened)
		}
	})
}

// start must be called in a bubble.
func start(t *testing.T, store *memStore, change func(*devchain.Options)) *world {
	w := &world{t: t, store: store, follower: &follower{t: t, store: store}}
	o := devchain.Options{
		Rules: store.rules, Store: store, Roots: store, Listener: w.follower,
		BlockTime: blockTime, FlashblockTime: flashblockTime, SafeLag: 2, FinalizedLag: 4,
	}
	if change != nil {
		change(&o)
	}
	s, err := devchain.New(o)
	if err != nil {
		t.Fatal(err)
	}
	w.Sequencer = s
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	w.stop = func() error {
		cancel()
		return <-done
	}
	synctest.Wait()
	return w
}

// pass lets time go by, until everything that it brings has happened.
func (w *world) pass(d time.Duration) {
	// Asking the chain something puts what the test has read before what the
	// chain writes next: time alone does not.
	if _, err := w.NextNonce(w.t.Context(), chain.Address{}); err != nil {
		w.t.Error(err)
	}
	<-time.After(d)
	synctest.Wait()
}

func (w *world) head() *types.Block { return w.store.last().block }

// pending is the state after the last flashblock.
func (w *world) pending() *memview.State { return w.follower.state }
