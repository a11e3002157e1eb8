// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/chain"
	"glimpse/evm"
)

// A NotNextError says that a block is neither stored nor the next one.
type NotNextError struct {
	Block  chain.Ref
	Parent chain.Hash

	// Stored is the store's block of the same height, or its head where it has
	// none of that height.
	Stored chain.Ref
}

func (e *NotNextError) Error() string {
	if e.Stored.Number == e.Block.Number {
		return fmt.Sprintf("block %s is not on the stored chain, which has %s there", e.Block, e.Stored)
	}
	return fmt.Sprintf("block %s with parent %s does not follow the head %s", e.Block, e.Parent, e.Stored)
}

// ErrEndNotReached is wrapped by the error of an import whose files end before
// the block that was asked for.
var ErrEndNotReached = errors.New("files end before the block to import up to")

// Run imports the blocks of files, in that order. It returns nil when it has
// reached the end of the files, or the block to end at, and ctx's error when
// ctx ends, between two blocks. A block that breaks the rules gives an error
// that wraps *evm.InvalidBlockError, a file that cannot be read a *FileError.
// In all cases every block that was passed before is stored.
func Run(ctx context.Context, store Store, rules *evm.Rules, files []string, o Options) error {
	if err := o.validate(); err != nil {
		return err
	}
	r := &run{store: store, rules: rules, options: o, start: time.Now()}
	if err := r.open(files); err != nil {
		return err
	}
	if _, byNumber := o.Head.Number(); byNumber && o.isEnd(r.head) {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	batches := make(chan batch, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		decodeAhead(ctx, files, rules, r.head.Number, batches)
	}()
	err := r.importAll(ctx, batches)
	cancel()
	<-done
	return err
}

type run struct {
	store   Store
	rules   *evm.Rules
	options Options
	start   time.Time

	head     chain.Ref
	header   *types.Header // of head
	progress Progress
}

// open reads where the store stands and how much there is to read.
func (r *run) open(files []string) error {
	head, err := r.store.Head()
	if err != nil {
		return fmt.Errorf("open head: %w", err)
	}
	head.Release()
	r.head = head.Ref
	raw, err := r.store.Header(head.Number)
	if err != nil {
		return fmt.Errorf("header of block %d: %w", head.Number, err)
	}
	r.header = new(types.Header)
	if err := rlp.DecodeBytes(raw, r.header); err != nil {
		return fmt.Errorf("header of block %d: %w: %w", head.Number, chain.ErrCorrupt, err)
	}
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		r.progress.BytesTotal += info.Size()
	}
	return nil
}

func (r *run) importAll(ctx context.Context, batches <-chan batch) error {
	for {
		var b batch
		select {
		case b = <-batches:
		case <-ctx.Done():
			return ctx.Err()
		}
		r.progress.BytesRead = b.read
		for _, block := range b.blocks {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := r.pass(block); err != nil {
				return err
			}
			if r.options.isEnd(refOf(block)) {
				return nil
			}
		}
		if errors.Is(b.err, io.EOF) {
			return r.endOfFiles()
		}
		if b.err != nil {
			return b.err
		}
	}
}

func (r *run) endOfFiles() error {
	if r.options.Head != (chain.Selector{}) {
		return fmt.Errorf("%w: have %s, want %s", ErrEndNotReached, r.head, r.options.Head)
	}
	return nil
}

// pass brings the store past a block: it is there already or it is imported.
func (r *run) pass(block *types.Block) error {
	ref := refOf(block)
	if !block.Header().Number.IsUint64() {
		return &evm.InvalidBlockError{Ref: ref, What: "number", Got: block.Number().String(), Want: "at most 64 bits"}
	}
	switch {
	case ref.Number <= r.head.Number:
		stored, err := r.store.Hash(ref.Number)
		if err != nil {
			return fmt.Errorf("hash of block %d: %w", ref.Number, err)
		}
		if stored != ref.Hash {
			return &NotNextError{ref, block.ParentHash(), chain.Ref{Number: ref.Number, Hash: stored}}
		}
		r.progress.Skipped++
	case ref.Number == r.head.Number+1 && block.ParentHash() == r.head.Hash:
		if err := r.importBlock(block); err != nil {
			return fmt.Errorf("import block %d: %w", ref.Number, err)
		}
		r.head, r.header = ref, block.Header()
	default:
		return &NotNextError{ref, block.ParentHash(), r.head}
	}
	r.report(ref)
	return nil
}

func (r *run) importBlock(block *types.Block) error {
	result, err := r.execute(block)
	if err != nil {
		if r.options.Roots != nil {
			r.options.Roots.Discard()
		}
		return err
	}
	stored, err := NewBlock(block, result.Receipts, result.Diff)
	if err != nil {
		return err
	}
	if err := r.store.Commit(stored); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	r.progress.Blocks++
	r.progress.Transactions += len(block.Transactions())
	r.progress.Gas += result.GasUsed
	return nil
}

func (r *run) execute(block *types.Block) (*evm.Result, error) {
	head, err := r.store.Head()
	if err != nil {
		return nil, fmt.Errorf("open head: %w", err)
	}
	defer head.Release()
	if head.Ref != r.head {
		return nil, fmt.Errorf("the head moved to %s during the import, was %s", head.Ref, r.head)
	}
	return r.rules.Execute(block, r.header, head.View, r.store.Hash, r.options.checks())
}

func (r *run) report(ref chain.Ref) {
	if r.options.Progress == nil {
		return
	}
	r.progress.Block = ref
	r.progress.Elapsed = time.Since(r.start)
	r.options.Progress(r.progress)
}
