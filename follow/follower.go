// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/follow/upstream"
)

// A Block is a block of the chain that is followed. Its hash is that of its
// header, and its transactions are those that the header names.
type Block = upstream.Block

// Heads are what the upstream calls so; nil is none.
type Heads struct {
	Latest          chain.Ref
	Header          *types.Header // of Latest
	Safe, Finalized *chain.Ref
}

// A Source has the blocks of the chain. It is used from one goroutine.
type Source interface {
	// Heads waits until the heads are others than it returned last.
	Heads(context.Context) (Heads, error)

	// Block returns a block by its hash, At the hash of the canonical one of a
	// height.
	Block(context.Context, chain.Hash) (*Block, error)
	At(context.Context, chain.Number) (chain.Hash, error)
}

// A Result is what a block did. Receipts is nil where nobody told.
type Result struct {
	Diff     *chain.Diff
	Receipts types.Receipts
}

// A Producer finds out what a block changed, on the state of its parent. An error
// says that it cannot be known now, or that the block is not what its header says.
type Producer interface {
	Produce(ctx context.Context, b *Block, parent *types.Header, base chain.View) (*Result, error)
}

// A Store keeps what is followed. It is used from one goroutine.
type Store interface {
	// Head opens the newest block with its state.
	Head() (*Head, error)

	// First is the lowest block of the store, Hash that of a block from First
	// to the head.
	First() chain.Number
	Hash(chain.Number) (chain.Hash, error)

	Commit(*Block, *Result) error
	Unwind(to chain.Number) error
	SetTags(safe, finalized *chain.Ref) error
}

// A Head is the newest block of a Store. Its View is good until Release.
type Head struct {
	chain.Ref
	Header  *types.Header
	View    chain.View
	Release func()
}

// A Listener is told what became of blocks, from the goroutine of Run.
type Listener interface {
	// Promised returns the block after the store's head that has this header, and
	// what it did, where it was pre-confirmed exactly so; false where that has to
	// be found out.
	Promised(*types.Header) (*Block, *Result, bool)

	// Announce is told that the store stands at b, after so many blocks were
	// taken back.
	Announce(b *Block, removed int) error

	// Trouble is told why the store is not at the upstream's head. Run goes on.
	Trouble(error)
}

// Options make a Follower. All of the first part is required.
type Options struct {
	Source   Source
	Producer Producer
	Store    Store
	Listener Listener

	// Retry is how long to wait after trouble; 0 means a second.
	Retry time.Duration
}

// A Follower keeps a Store in step with a Source.
type Follower struct{ Options }

// New returns a Follower.
func New(o Options) *Follower {
	if o.Retry == 0 {
		o.Retry = time.Second
	}
	return &Follower{o}
}

// ErrDeep is for a reorganisation that goes below the first block of the store:
// what is there belongs to another chain now, and nothing of it can be kept.
var ErrDeep = errors.New("the chain was reorganised below the first block that was followed")

// Run follows until ctx ends, or until it cannot go on.
func (f *Follower) Run(ctx context.Context) error {
	heads, err := f.Source.Heads(ctx)
	for ctx.Err() == nil {
		if err == nil {
			err = f.reach(ctx, heads)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrDeep):
			return err
		case err != nil:
			f.Listener.Trouble(err)
			heads, err = f.again(ctx, heads)
		default:
			heads, err = f.Source.Heads(ctx)
		}
	}
	return nil
}

// again waits before the same is tried again, or until there is something newer
// to try.
func (f *Follower) again(ctx context.Context, before Heads) (Heads, error) {
	ctx, cancel := context.WithTimeout(ctx, f.Retry)
	defer cancel()
	newer, err := f.Source.Heads(ctx)
	if err == nil {
		return newer, nil
	}
	<-ctx.Done() // a source that fails at once is not asked in a hurry
	if before == (Heads{}) {
		return before, err
	}
	return before, nil
}

// stride is how many blocks are fetched before they are added, when there is much
// to catch up with.
const stride = 64

// reach brings the store to the heads of the upstream.
func (f *Follower) reach(ctx context.Context, heads Heads) error {
	for {
		head, err := f.Store.Head()
		if err != nil {
			return err
		}
		at := head.Ref
		head.Release()
		if at == heads.Latest {
			return f.tag(heads)
		}
		if done, err := f.keep(at, heads.Header); done || err != nil {
			if err != nil {
				return fmt.Errorf("block %s: %w", heads.Latest, err)
			}
			continue
		}
		target := heads.Latest
		if target.Number > at.Number+stride {
			target.Number = at.Number + stride
			if target.Hash, err = f.Source.At(ctx, target.Number); err != nil {
				return fmt.Errorf("block %d: %w", target.Number, err)
			}
		}
		if err := f.advance(ctx, at, target); err != nil {
			return err
		}
	}
}

// keep adds the upstream's newest block without asking for it, where it follows
// on what is there and was pre-confirmed: then all of it is here.
func (f *Follower) keep(at chain.Ref, newest *types.Header) (done bool, err error) {
	if newest == nil || newest.ParentHash != at.Hash {
		return false, nil
	}
	b, r, ok := f.Listener.Promised(newest)
	if !ok {
		return false, nil
	}
	if err := f.Store.Commit(b, r); err != nil {
		return false, err
	}
	return true, f.Listener.Announce(b, 0)
}

// tag passes on what is safe and finalized. One that the store does not have on
// its branch is none; whether one before its first block is on it, only the
// upstream can tell.
func (f *Follower) tag(heads Heads) error {
	known := func(r *chain.Ref) *chain.Ref {
		if r == nil || r.Number > heads.Latest.Number {
			return nil
		}
		if r.Number < f.Store.First() {
			return r
		}
		if h, err := f.Store.Hash(r.Number); err != nil || h != r.Hash {
			return nil
		}
		return r
	}
	return f.Store.SetTags(known(heads.Safe), known(heads.Finalized))
}

// advance brings the store from its head to a block, by way of the newest block
// that both have, and announces it when it is there.
func (f *Follower) advance(ctx context.Context, from, to chain.Ref) error {
	branch, ancestor, err := f.branch(ctx, from, to)
	if err != nil {
		return err
	}
	removed := int(from.Number - ancestor)
	if removed > 0 {
		if err := f.Store.Unwind(ancestor); err != nil {
			return fmt.Errorf("take back blocks above %d: %w", ancestor, err)
		}
	}
	for _, b := range branch {
		if err := f.add(ctx, b); err != nil {
			return fmt.Errorf("block %s: %w", b.Ref, err)
		}
	}
	if len(branch) == 0 {
		return fmt.Errorf("the upstream's newest block %s is one that it had before", to)
	}
	return f.Listener.Announce(branch[len(branch)-1], removed)
}

// branch returns the blocks that lead to a block, oldest first, and the height of
// the newest that the store has too.
func (f *Follower) branch(ctx context.Context, from, to chain.Ref) (branch []*Block, ancestor chain.Number, err error) {
	for want := to.Hash; ; {
		b, err := f.Source.Block(ctx, want)
		if err != nil {
			return nil, 0, fmt.Errorf("block %x: %w", want, err)
		}
		if len(branch) > 0 && b.Number+1 != branch[0].Number {
			return nil, 0, fmt.Errorf("block %s is named as the parent of %s", b.Ref, branch[0].Ref)
		}
		if b.Number <= f.Store.First() {
			return nil, 0, ErrDeep
		}
		branch = append([]*Block{b}, branch...)
		if parent := b.Number - 1; parent <= from.Number {
			have, err := f.Store.Hash(parent)
			if err != nil {
				return nil, 0, err
			}
			if have == b.Header.ParentHash {
				return branch, parent, nil
			}
		}
		want = b.Header.ParentHash
	}
}

// add commits the block after the head.
func (f *Follower) add(ctx context.Context, b *Block) error {
	if _, r, ok := f.Listener.Promised(b.Header); ok {
		return f.Store.Commit(b, r)
	}
	head, err := f.Store.Head()
	if err != nil {
		return err
	}
	r, err := f.Producer.Produce(ctx, b, head.Header, head.View)
	head.Release()
	if err != nil {
		return err
	}
	return f.Store.Commit(b, r)
}
