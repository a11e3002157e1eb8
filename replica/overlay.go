// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"slices"

	"glimpse/chain"
)

// An Overlay is all that is pre-confirmed at one moment: blocks that stand on a
// sealed one, the lowest first, each with what its flashblocks changed. It and
// all that it points to is immutable. One without blocks says that nothing is
// pre-confirmed.
type Overlay struct {
	Parent chain.Ref
	Blocks []OverlayBlock
}

// An OverlayBlock is one block of an Overlay.
type OverlayBlock struct {
	Block  *chain.Preconfirmed
	Layers []Layer // oldest first
}

// Parts returns the whole of o, for a Pending event.
func (o *Overlay) Parts() []Part {
	parts := make([]Part, len(o.Blocks))
	for i, b := range o.Blocks {
		parts[i] = b.since(0, 0)
	}
	return parts
}

// PartsSince returns what o has more than older; false where it is not just
// older and more. Layers are compared by their Diff's address: Diffs are
// immutable, and those of one flashblock are one Diff.
func (o *Overlay) PartsSince(older *Overlay) ([]Part, bool) {
	if o.Parent != older.Parent || len(older.Blocks) == 0 || len(o.Blocks) < len(older.Blocks) {
		return nil, false
	}
	var parts []Part
	for i, b := range o.Blocks {
		if i >= len(older.Blocks) {
			parts = append(parts, b.since(0, 0))
			continue
		}
		was := older.Blocks[i]
		if !b.continues(was) {
			return nil, false
		}
		if b.Block != was.Block || len(b.Layers) != len(was.Layers) {
			parts = append(parts, b.since(len(was.Block.Hashes), len(was.Layers)))
		}
	}
	return parts, true
}

func (b OverlayBlock) continues(was OverlayBlock) bool {
	sameLayer := func(a, b Layer) bool { return a.Diff == b.Diff }
	return len(b.Layers) >= len(was.Layers) && slices.EqualFunc(b.Layers[:len(was.Layers)], was.Layers, sameLayer) &&
		len(b.Block.Hashes) >= len(was.Block.Hashes) && slices.Equal(b.Block.Hashes[:len(was.Block.Hashes)], was.Block.Hashes) &&
		b.Block.Header.ParentHash == was.Block.Header.ParentHash
}

// since returns the block without its first transactions and layers.
func (b OverlayBlock) since(transactions, layers int) Part {
	p := Part{
		Header: b.Block.Header, Index: b.Block.Index, First: transactions,
		Hashes: b.Block.Hashes[transactions:], Layers: b.Layers[layers:],
	}
	if len(b.Block.Receipts) == len(b.Block.Hashes) {
		p.Receipts = b.Block.Receipts[transactions:]
	}
	if len(b.Block.Transactions) == len(b.Block.Hashes) {
		p.Transactions = b.Block.Transactions[transactions:]
	}
	return p
}

// add returns o with parts, which continue its highest block or follow it. O is
// not changed. The error is of parts that do not fit.
func (o *Overlay) add(parts []Part) (*Overlay, error) {
	next := &Overlay{Parent: o.Parent, Blocks: slices.Clone(o.Blocks)}
	for i := range parts {
		p := &parts[i]
		number := chain.Number(p.Header.Number.Uint64())
		offset := number - o.Parent.Number - 1
		switch {
		case number > o.Parent.Number && offset == chain.Number(len(next.Blocks)):
			next.Blocks = append(next.Blocks, OverlayBlock{Block: new(chain.Preconfirmed)})
		case number <= o.Parent.Number || offset+1 != chain.Number(len(next.Blocks)):
			return nil, fmt.Errorf("%w: pre-confirmed block %d has no place on %d blocks above %s", ErrEvent, number, len(next.Blocks), o.Parent)
		}
		if offset == 0 && p.Header.ParentHash != o.Parent.Hash {
			return nil, fmt.Errorf("%w: pre-confirmed block %d stands on %s, not on %s", ErrEvent, number, p.Header.ParentHash, o.Parent)
		}
		b, err := next.Blocks[offset].with(p)
		if err != nil {
			return nil, err
		}
		next.Blocks[offset] = b
	}
	return next, nil
}

func (b OverlayBlock) with(p *Part) (OverlayBlock, error) {
	old := b.Block
	if p.First != len(old.Hashes) || len(p.Layers) == 0 && len(b.Layers) == 0 ||
		old.Header != nil && old.Header.ParentHash != p.Header.ParentHash {
		return b, fmt.Errorf("%w: what was added to pre-confirmed block %s follows %d transactions, not %d", ErrEvent, p.Header.Number, p.First, len(old.Hashes))
	}
	block := &chain.Preconfirmed{Header: p.Header, Index: p.Index, Hashes: slices.Concat(old.Hashes, p.Hashes)}
	// They are there in full or not at all.
	if all := slices.Concat(old.Transactions, p.Transactions); len(all) == len(block.Hashes) {
		block.Transactions = all
	}
	if all := slices.Concat(old.Receipts, p.Receipts); len(all) == len(block.Hashes) {
		block.Receipts = all
	}
	for _, l := range p.Layers {
		if l.First > len(block.Hashes) {
			return b, fmt.Errorf("%w: a change begins after the last transaction", ErrEvent)
		}
	}
	return OverlayBlock{Block: block, Layers: slices.Concat(b.Layers, p.Layers)}, nil
}

// A sealedNote is what is remembered of a block that was applied, to tell what it
// makes of an Overlay.
type sealedNote struct {
	chain.Ref
	parent       chain.Hash
	transactions []chain.Hash
}

// rebase returns o as it stands on a block that was sealed on its parent; false
// where that is not the block that was promised, so that nothing of o is known
// to be right. It is what the writer does too: who has the block that the next
// one names as its parent, with the transactions that were promised, has the
// state that the next one was executed on.
func (o *Overlay) rebase(s *sealedNote) (*Overlay, bool) {
	if s.parent != o.Parent.Hash || len(o.Blocks) < 2 {
		return nil, false
	}
	promised, above := o.Blocks[0].Block, o.Blocks[1].Block
	if above.Header.ParentHash != s.Hash || !slices.Equal(promised.Hashes, s.transactions) {
		return nil, false
	}
	return &Overlay{Parent: s.Ref, Blocks: slices.Clone(o.Blocks[1:])}, true
}
