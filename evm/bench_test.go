// SPDX-License-Identifier: Apache-2.0

package evm_test

import (
	"testing"

	"glimpse/evm"
	"glimpse/internal/chaingen"
)

// BenchmarkExecute runs a chain of small blocks with known senders. The
// difference of the two is what state roots cost.
func BenchmarkExecute(b *testing.B) {
	c := generated(chaingen.Newest, "newest", 10, 100)
	for name, withRoots := range map[string]bool{"receipts": false, "root": true} {
		b.Run(name, func(b *testing.B) {
			var txs, gas uint64
			for b.Loop() {
				r := newReplay(b, c.genesis)
				txs, gas = 0, 0
				for _, block := range c.blocks {
					checks := evm.Checks{Receipts: true}
					if withRoots {
						checks.Roots = r.tries
					}
					result, err := r.rules.Execute(block, r.head, r.state, r.ancestors, checks)
					if err != nil {
						b.Fatal(err)
					}
					r.commit(b, block, result.Diff)
					txs += uint64(len(block.Transactions()))
					gas += block.GasUsed()
				}
			}
			seconds := b.Elapsed().Seconds() / float64(b.N)
			b.ReportMetric(float64(txs)/seconds, "txs/s")
			b.ReportMetric(float64(gas)/1e6/seconds, "Mgas/s")
		})
	}
}
