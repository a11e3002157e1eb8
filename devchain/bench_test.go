// SPDX-License-Identifier: Apache-2.0

package devchain_test

import (
	"context"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/devchain"
)

// BenchmarkMine takes in a hundred transfers, pre-confirms them and seals them
// with the state root.
func BenchmarkMine(b *testing.B) {
	const transfers = 100
	store := newStore(b, devchain.Genesis())
	s, err := devchain.New(devchain.Options{
		Rules: store.rules, Store: store, Roots: store, BlockTime: 2 * time.Hour, FlashblockTime: time.Hour,
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	for round := uint64(0); b.Loop(); round++ {
		b.StopTimer()
		var txs []*types.Transaction
		for i := range uint64(transfers) {
			txs = append(txs, transfer(b, int(i%10), 1, round*transfers/10+i/10, 1))
		}
		b.StartTimer()
		for _, tx := range txs {
			if err := s.Send(ctx, tx); err != nil {
				b.Fatal(err)
			}
		}
		if sealed, err := s.Mine(ctx); err != nil || len(sealed.Block.Transactions()) != transfers {
			b.Fatalf("got %v, want all %d sealed", err, transfers)
		}
	}
	cancel()
	if err := <-done; err != nil {
		b.Error(err)
	}
}
