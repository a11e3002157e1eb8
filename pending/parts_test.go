// SPDX-License-Identifier: Apache-2.0

package pending_test

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/pending"
)

// An Overlay that was taken apart and put together again reads as before, whatever
// the feed did, and is made of the same Diffs.
func TestPartsMakeTheSameOverlay(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			s := newStorm(t, seed)
			blocks, layers := 0, 0
			s.after = func(o *pending.Overlay) {
				parts := o.Parts()
				again, err := pending.NewOverlay(o.Parent(), parts)
				if err != nil {
					t.Fatal(err)
				}
				s.check(again)
				for i, p := range again.Parts() {
					blocks++
					layers += len(p.Layers)
					for k, l := range p.Layers {
						if l != parts[i].Layers[k] {
							t.Fatalf("layer %d of block %d is %v, was %v", k, i, l, parts[i].Layers[k])
						}
					}
				}
			}
			for range 250 {
				s.step()
			}
			s.finish()
			if blocks < 50 || layers < 2*blocks {
				t.Errorf("only %d blocks with %d layers were compared", blocks, layers)
			}
		})
	}
}

func TestPartsThatFitNothingAreRefused(t *testing.T) {
	block := &chain.Preconfirmed{Header: &types.Header{Number: big.NewInt(1)}, Hashes: []chain.Hash{{1}, {2}}}
	layers := func(first ...int) (all []pending.Layer) {
		for _, n := range first {
			all = append(all, pending.Layer{First: n, Diff: new(chain.Diff)})
		}
		return all
	}
	tests := []struct {
		name   string
		layers []pending.Layer
		ok     bool
	}{
		{"one layer", layers(0), true},
		{"a layer for each transaction, and one for the end", layers(0, 1, 2), true},
		{"no layer", nil, false},
		{"transactions before the first layer", layers(1), false},
		{"out of order", layers(0, 2, 1), false},
		{"beyond the last transaction", layers(0, 3), false},
		{"a negative index", layers(0, -1), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := pending.NewOverlay(chain.Ref{}, []pending.Part{{Block: block, Layers: tt.layers}})
			if (err == nil) != tt.ok {
				t.Errorf("got %v, want ok %v", err, tt.ok)
			}
		})
	}
}
