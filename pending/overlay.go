// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"slices"

	"glimpse/chain"
)

// maxDepth is how many layers a read may have to look through. Sequencers send
// about ten flashblocks for a block, so that few blocks are ever folded.
const maxDepth = 16

// An Overlay is the pre-confirmed state at one moment: one or more blocks that
// stand on a sealed one, as what each of their flashblocks changed. It is
// immutable and safe for concurrent use, and reads take no lock and allocate
// nothing. The zero Overlay has no blocks: nothing is pre-confirmed.
type Overlay struct {
	parent chain.Ref
	blocks []stacked // the one on parent first
	layers []*layer  // of all blocks, oldest first

	touched *touched // by layers; nil where there never was one
}

// A stacked block is one block of an Overlay and how many layers are its own.
type stacked struct {
	block  *chain.Preconfirmed
	layers int
}

// Parent returns the sealed block that the Overlay stands on.
func (o *Overlay) Parent() chain.Ref { return o.parent }

// Preconfirmed returns the newest block; false where there is none.
func (o *Overlay) Preconfirmed() (*chain.Preconfirmed, bool) {
	if len(o.blocks) == 0 {
		return nil, false
	}
	return o.blocks[len(o.blocks)-1].block, true
}

// Blocks returns all blocks, the one on Parent first.
func (o *Overlay) Blocks() []*chain.Preconfirmed {
	all := make([]*chain.Preconfirmed, len(o.blocks))
	for i, s := range o.blocks {
		all[i] = s.block
	}
	return all
}

// Transaction returns the block that a transaction is in and its index there;
// false where no block has it.
func (o *Overlay) Transaction(hash chain.Hash) (block *chain.Preconfirmed, index int, ok bool) {
	top := len(o.layers)
	for i := len(o.blocks) - 1; i >= 0; i-- {
		bottom := top - o.blocks[i].layers
		for _, l := range o.layers[bottom:top] {
			if index, ok := l.txs[hash]; ok {
				return o.blocks[i].block, index, true
			}
		}
		top = bottom
	}
	return nil, 0, false
}

// Account returns an account that was changed; false means that it is as in the
// state below.
func (o *Overlay) Account(addr chain.Address) (chain.Account, bool) {
	for i := len(o.layers) - 1; i >= 0; i-- {
		if a := o.layers[i].account(addr); a != nil && a.Changed {
			return a.Account, true
		}
	}
	return chain.Account{}, false
}

// Slot returns the value of a slot that was written or wiped, which may be zero;
// false means that it is as in the state below.
func (o *Overlay) Slot(addr chain.Address, key chain.Slot) (chain.Value, bool) {
	if o.touched == nil || !o.touched.may(&addr, &key) {
		return chain.Value{}, false
	}
	for i := len(o.layers) - 1; i >= 0; i-- {
		if a := o.layers[i].account(addr); a != nil {
			if value, ok := slot(a, key); ok {
				return value, true
			}
		}
	}
	return chain.Value{}, false
}

// Code returns bytecode that an account was given; false means that the state
// below may have it. The slice must not be modified.
func (o *Overlay) Code(hash chain.Hash) ([]byte, bool) {
	for i := len(o.layers) - 1; i >= 0; i-- {
		if code, ok := o.layers[i].code(hash); ok {
			return code, true
		}
	}
	return nil, false
}

// On returns the state that o makes of base, which must be that of its parent.
func (o *Overlay) On(base chain.View) *View { return &View{overlay: o, base: base} }

// A View is an Overlay on the state of its parent. It implements chain.View.
type View struct {
	overlay *Overlay
	base    chain.View
}

// Account implements chain.View.
func (v *View) Account(addr chain.Address) (chain.Account, error) {
	if a, ok := v.overlay.Account(addr); ok {
		return a, nil
	}
	return v.base.Account(addr)
}

// Slot implements chain.View.
func (v *View) Slot(addr chain.Address, key chain.Slot) (chain.Value, error) {
	if value, ok := v.overlay.Slot(addr, key); ok {
		return value, nil
	}
	return v.base.Slot(addr, key)
}

// Code implements chain.View.
func (v *View) Code(hash chain.Hash) ([]byte, error) {
	if code, ok := v.overlay.Code(hash); ok {
		return code, nil
	}
	return v.base.Code(hash)
}

// push returns o with a first flashblock of a block that follows.
func (o *Overlay) push(block *chain.Preconfirmed, diff *chain.Diff) *Overlay {
	next := &Overlay{parent: o.parent, blocks: append(slices.Clone(o.blocks), stacked{block: block}), layers: o.layers, touched: o.touched}
	return next.add(diff, block, 0)
}

// extend returns o with its newest block as it is after one more flashblock,
// whose transactions begin at from.
func (o *Overlay) extend(block *chain.Preconfirmed, diff *chain.Diff, from int) *Overlay {
	next := &Overlay{parent: o.parent, blocks: slices.Clone(o.blocks), layers: o.layers, touched: o.touched}
	next.blocks[len(next.blocks)-1].block = block
	return next.add(diff, block, from)
}

// add puts one layer on the newest block of an Overlay that is not published.
// The list of layers is copied: it is short, and another Overlay may stand on a
// part of it.
func (o *Overlay) add(diff *chain.Diff, block *chain.Preconfirmed, from int) *Overlay {
	o.layers = append(slices.Clone(o.layers), newLayer(diff, block.Hashes, from, len(block.Hashes)))
	o.blocks[len(o.blocks)-1].layers++
	o.touched = o.touched.with(diff)
	o.fold()
	return o
}

// fold makes one layer of several where there are too many to read through.
func (o *Overlay) fold() {
	top := len(o.layers)
	for i := len(o.blocks) - 1; i >= 0 && len(o.layers) > maxDepth; i-- {
		s := &o.blocks[i]
		bottom := top - s.layers
		keep := 0 // a block that is complete becomes one layer
		if i == len(o.blocks)-1 {
			keep = keepLayers(o.layers[bottom:top])
		}
		if s.layers-keep > 1 {
			one := fold(o.layers[bottom+keep : top])
			o.layers = slices.Replace(o.layers, bottom+keep, top, one)
			s.layers = keep + 1
		}
		top = bottom
	}
}

// keepLayers returns how many of the oldest layers of a growing block are left
// alone when it is folded: those much bigger than all above them. So each change
// is folded a number of times that grows with the logarithm of the block.
func keepLayers(layers []*layer) int {
	keep := len(layers) - 1
	size := layers[keep].size()
	for keep > 0 {
		below := layers[keep-1].size()
		if below > 2*size && keep < len(layers)-1 {
			break
		}
		size += below
		keep--
	}
	return keep
}

// rebase returns o without its lowest block, standing on it as sealed.
func (o *Overlay) rebase(parent chain.Ref) *Overlay {
	layers := slices.Clone(o.layers[o.blocks[0].layers:])
	return &Overlay{parent: parent, blocks: slices.Clone(o.blocks[1:]), layers: layers, touched: touchedBy(layers)}
}

// cut returns o with only its lowest n blocks.
func (o *Overlay) cut(n int) *Overlay {
	count := 0
	for _, s := range o.blocks[:n] {
		count += s.layers
	}
	layers := slices.Clone(o.layers[:count])
	return &Overlay{parent: o.parent, blocks: slices.Clone(o.blocks[:n]), layers: layers, touched: touchedBy(layers)}
}
