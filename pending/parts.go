// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"fmt"

	"glimpse/chain"
)

// A Part is one block of an Overlay and what its flashblocks changed. With all
// Parts an Overlay can be made again elsewhere.
type Part struct {
	Block  *chain.Preconfirmed
	Layers []Layer // oldest first, at least one
}

// A Layer is what one flashblock changed, or several, or the end of a block. It
// holds the transactions from First up to the First of the next one.
type Layer struct {
	First int // index in the block of its first transaction
	Diff  *chain.Diff
}

// Parts returns all blocks, the one on Parent first. Diffs and blocks are those of
// o itself, so that whoever compares two Overlays sees by their addresses what is
// the same; they must not be modified.
func (o *Overlay) Parts() []Part {
	parts := make([]Part, len(o.blocks))
	rest := o.layers
	for i, s := range o.blocks {
		parts[i] = Part{Block: s.block, Layers: make([]Layer, s.layers)}
		for k, l := range rest[:s.layers] {
			parts[i].Layers[k] = Layer{First: l.first, Diff: l.diff}
		}
		rest = rest[s.layers:]
	}
	return parts
}

// NewOverlay returns the Overlay of parts that stand on parent, the lowest first;
// it is the inverse of Parts. What they point to must not be modified any more. It
// refuses blocks without a layer and layers that are not in order.
func NewOverlay(parent chain.Ref, parts []Part) (*Overlay, error) {
	o := &Overlay{parent: parent}
	for _, p := range parts {
		if len(p.Layers) == 0 {
			return nil, fmt.Errorf("pre-confirmed block %d without a layer", p.Block.Header.Number)
		}
		o.blocks = append(o.blocks, stacked{block: p.Block, layers: len(p.Layers)})
		for i, l := range p.Layers {
			end := len(p.Block.Hashes)
			if i+1 < len(p.Layers) {
				end = p.Layers[i+1].First
			}
			if l.First < 0 || l.First > end || end > len(p.Block.Hashes) || i == 0 && l.First != 0 {
				return nil, fmt.Errorf("layer %d of pre-confirmed block %d has transactions %d to %d of %d", i, p.Block.Header.Number, l.First, end, len(p.Block.Hashes))
			}
			o.layers = append(o.layers, newLayer(l.Diff, p.Block.Hashes, l.First, end))
		}
	}
	o.touched = touchedBy(o.layers)
	o.fold()
	return o, nil
}
