// SPDX-License-Identifier: Apache-2.0

package devchain_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/devchain"
)

// Whatever bytes are sent, they are taken or refused, and the chain goes on.
func FuzzSend(f *testing.F) {
	deploy, addr := deployment(f, 0, 0)
	blob := blobData(f, 0)
	blob.Sidecar = nil
	for _, tx := range []*types.Transaction{
		deploy, call(f, 1, 0, addr, storing(1, 2)), transfer(f, 2, 3, 0, 1), delegation(f, 3, 0, 4, 0, addr), sign(f, 5, blob),
		types.NewTx(&types.LegacyTx{}),
	} {
		raw, err := tx.MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte{})
	f.Add([]byte{0x03, 0xc0})
	store := newStore(f, devchain.Genesis())
	s, err := devchain.New(devchain.Options{Rules: store.rules, Store: store, Roots: store, BlockTime: time.Hour})
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	f.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			f.Errorf("got %v from Run, want nil", err)
		}
	})
	f.Fuzz(func(t *testing.T, raw []byte) {
		refusal := new(devchain.Refusal)
		tx, err := devchain.DecodeTransaction(raw)
		if err == nil {
			err = s.Send(ctx, tx)
		}
		if err != nil && !errors.As(err, &refusal) {
			t.Errorf("got %v, want it taken or refused", err)
		}
		if err == nil {
			if _, err := s.Mine(ctx); err != nil {
				t.Errorf("mine: %v", err)
			}
		}
	})
}
