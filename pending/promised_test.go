// SPDX-License-Identifier: Apache-2.0

package pending_test

import (
	"bytes"
	"math/big"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/pending"
)

// A header is enough to know whether its block is what was promised: each thing
// that could make it another one is told.
func TestPromisedByHeader(t *testing.T) {
	tests := []struct {
		name   string
		change func(*types.Header)
		want   bool
	}{
		{"as promised", func(*types.Header) {}, true},
		{"another extra data and state root, which do not change the state", func(h *types.Header) { h.Extra, h.Root = []byte("x"), chain.Hash{1} }, true},
		{"other transactions", func(h *types.Header) { h.TxHash[0]++ }, false},
		{"no transactions", func(h *types.Header) { h.TxHash = types.EmptyTxsHash }, false},
		{"withdrawals", func(h *types.Header) { h.WithdrawalsHash = &chain.Hash{1} }, false},
		{"another parent", func(h *types.Header) { h.ParentHash[0]++ }, false},
		{"another coinbase", func(h *types.Header) { h.Coinbase[0]++ }, false},
		{"another time", func(h *types.Header) { h.Time++ }, false},
		{"another base fee", func(h *types.Header) { h.BaseFee = big.NewInt(8) }, false},
		{"other gas used", func(h *types.Header) { h.GasUsed++ }, false},
		{"other receipts", func(h *types.Header) { h.ReceiptHash[0]++ }, false},
		{"other logs", func(h *types.Header) { h.Bloom[0]++ }, false},
		{"another beacon root", func(h *types.Header) { h.ParentBeaconRoot = &chain.Hash{1} }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t, pending.Options{})
			c := s.begin(s.head())
			s.note(s.tracker.Flashblock(c.flashblock(c.write(1, 7))))
			s.note(s.tracker.Flashblock(c.flashblock(c.write(2, 8), c.write(1, 9))))
			sealed := c.seal()
			h := types.CopyHeader(sealed.header)
			tt.change(h)
			done, ok, err := s.tracker.Promised(h)
			if err != nil || ok != tt.want {
				t.Fatalf("Promised = %v (%v), want %v; events %v", ok, err, tt.want, s.log)
			}
			if !ok {
				return
			}
			for i, tx := range sealed.txs {
				raw, err := tx.MarshalBinary()
				if err != nil || !bytes.Equal(done.Raw[i], raw) || done.Hashes[i] != tx.Hash() || done.Transactions[i].Hash() != tx.Hash() {
					t.Errorf("transaction %d is not that of the block (%v)", i, err)
				}
			}
			block := c.open()
			if _, _, err := block.Apply(sealed.txs); err != nil {
				t.Fatal(err)
			}
			if _, _, err := block.Finish(new(types.Body)); err != nil {
				t.Fatal(err)
			}
			want, err := block.Diff()
			if err != nil || !reflect.DeepEqual(done.Diff, want) || len(done.Receipts) != len(sealed.txs) {
				t.Errorf("changes %+v, want %+v (%v), with %d receipts", done.Diff, want, err, len(done.Receipts))
			}
		})
	}
}

// What was promised and went on is not what was sealed before the end.
func TestPromisedIsTheWholeBlock(t *testing.T) {
	s := newScene(t, pending.Options{})
	if _, ok, err := s.tracker.Promised(s.head().header); ok || err != nil {
		t.Errorf("a block is promised though nothing is (%v)", err)
	}
	c := s.begin(s.head())
	first := c.flashblock(c.write(1, 7))
	s.note(s.tracker.Flashblock(first))
	c.flashblock(c.write(2, 8)) // never arrives
	if _, ok, err := s.tracker.Promised(c.seal().header); ok || err != nil {
		t.Errorf("a block is promised of which a part is missing (%v)", err)
	}
}
