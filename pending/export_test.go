// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"math/big"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
)

// Stack makes an Overlay of Diffs, those of a block at a time, without executing
// anything.
func Stack(blocks ...[]*chain.Diff) *Overlay {
	o := new(Overlay)
	for n, diffs := range blocks {
		for i, diff := range diffs {
			b := &chain.Preconfirmed{Header: &types.Header{Number: big.NewInt(int64(n) + 1)}, Index: uint64(i)}
			if i == 0 {
				o = o.push(b, diff)
			} else {
				o = o.extend(b, diff, 0)
			}
		}
	}
	return o
}

// Depth is how many layers a read looks through at most.
func (o *Overlay) Depth() int { return len(o.layers) }

// Rebase drops the lowest block.
func (o *Overlay) Rebase() *Overlay { return o.rebase(chain.Ref{}) }

// Cut keeps the lowest n blocks.
func (o *Overlay) Cut(n int) *Overlay { return o.cut(n) }

// MaxDepth is the bound on Depth for a single block.
const MaxDepth = maxDepth
