// SPDX-License-Identifier: Apache-2.0

package pending_test

import (
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/flashblock"
	"glimpse/pending"
)

// The cost of a flashblock of ten transactions must not depend on how many the
// block has already.
func BenchmarkApplyAfter(b *testing.B) {
	for _, earlier := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("transactions=%d", earlier), func(b *testing.B) {
			w := newWorld(b, 1, cancun())
			c := w.begin(w.head())
			before := c.pieces(earlier / 10)
			measured := c.pieces(20)
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				tracker := pending.NewTracker(w.rules, w.sealed(w.head()), pending.Options{})
				for _, m := range before {
					tracker.Flashblock(m)
				}
				b.StartTimer()
				for _, m := range measured {
					if events := tracker.Flashblock(m); events[0].Kind != pending.Applied {
						b.Fatal(describe(events[0]), events[0].Err)
					}
				}
				b.StopTimer()
				tracker.Close()
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(measured)), "µs/flashblock")
		})
	}
}

// pieces returns n flashblocks of ten transactions.
func (c *construction) pieces(n int) (pieces []*flashblock.Message) {
	for range n {
		var txs []*types.Transaction
		for range 10 {
			slot := uint64(len(c.txs) + len(txs))
			txs = append(txs, c.call(int(slot%4), mortal, pair(slot, 1)...))
		}
		pieces = append(pieces, c.flashblock(txs...))
	}
	return pieces
}

func BenchmarkReadThroughTenLayers(b *testing.B) {
	w := newWorld(b, 1, cancun())
	c := w.begin(w.head())
	tracker := pending.NewTracker(w.rules, w.sealed(w.head()), pending.Options{})
	defer tracker.Close()
	for _, m := range c.pieces(10) {
		tracker.Flashblock(m)
	}
	var view chain.View = tracker.Overlay().On(w.head().state)
	for _, slot := range []struct {
		name string
		key  chain.Slot
	}{{"oldest", word(0)}, {"newest", word(99)}, {"untouched", word(5000)}} {
		b.Run(slot.name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if _, err := view.Slot(mortal, slot.key); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
