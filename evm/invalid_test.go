// SPDX-License-Identifier: Apache-2.0

package evm_test

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/trie"

	"glimpse/chain"
	"glimpse/evm"
	"glimpse/internal/chaingen"
)

func TestInvalidBlocks(t *testing.T) {
	c := generated(chaingen.Newest, "newest", 8, 12)
	last := c.blocks[len(c.blocks)-1]
	if len(last.Transactions()) == 0 {
		t.Fatal("the last block has no transactions; take another seed")
	}
	tests := []struct {
		name   string
		header func(*types.Header)
		body   func(*types.Header, *types.Body)
		want   string
	}{
		{name: "gas used", header: func(h *types.Header) { h.GasUsed++ }, want: "gas used"},
		{name: "logs bloom", header: func(h *types.Header) { h.Bloom[7] ^= 1 }, want: "logs bloom"},
		{name: "receipts root", header: func(h *types.Header) { h.ReceiptHash[0] ^= 1 }, want: "receipts root"},
		{name: "requests hash", header: func(h *types.Header) { h.RequestsHash = &chain.Hash{1} }, want: "requests hash"},
		{name: "no requests hash", header: func(h *types.Header) { h.RequestsHash = nil }, want: "requests hash present"},
		{name: "state root", header: func(h *types.Header) { h.Root[0] ^= 1 }, want: "state root"},
		{name: "transactions root", header: func(h *types.Header) { h.TxHash[0] ^= 1 }, want: "transactions root"},
		{name: "withdrawals root", header: func(h *types.Header) { h.WithdrawalsHash = &chain.Hash{1} }, want: "withdrawals root"},
		{name: "parent", header: func(h *types.Header) { h.ParentHash[0] ^= 1 }, want: "parent"},
		{name: "number", header: func(h *types.Header) { h.Number.Add(h.Number, big.NewInt(1)) }, want: "number"},
		{name: "timestamp", header: func(h *types.Header) { h.Time -= 10 }, want: "timestamp"},
		{name: "base fee", header: func(h *types.Header) { h.BaseFee.Add(h.BaseFee, big.NewInt(1)) }, want: "baseFee"},
		{name: "gas limit", header: func(h *types.Header) { h.GasLimit *= 2 }, want: "gas limit"},
		{name: "difficulty", header: func(h *types.Header) { h.Difficulty.SetInt64(5) }, want: "terminal block"},
		{name: "nonce", header: func(h *types.Header) { h.Nonce[0] = 1 }, want: "nonce"},
		{name: "blob gas used", header: func(h *types.Header) { *h.BlobGasUsed += params.BlobTxBlobGasPerBlob }, want: "blob gas used"},
		{name: "excess blob gas", header: func(h *types.Header) { *h.ExcessBlobGas += 1 }, want: "excessBlobGas"},
		{name: "no beacon root", header: func(h *types.Header) { h.ParentBeaconRoot = nil }, want: "parent beacon root"},
		{name: "no base fee", header: func(h *types.Header) { h.BaseFee = nil }, want: "base fee"},
		{name: "access list before its fork", header: func(h *types.Header) { h.BlockAccessListHash = new(chain.Hash) }, want: "access list"},
		{name: "uncles hash", header: func(h *types.Header) { h.UncleHash[0] ^= 1 }, want: "uncle"},
		{name: "another coinbase", header: func(h *types.Header) { h.Coinbase[3] ^= 1 }, want: "state root"},
		{name: "a transaction dropped", want: "transactions root", body: func(_ *types.Header, b *types.Body) {
			b.Transactions = b.Transactions[1:]
		}},
		{name: "a transaction twice", want: "transaction 1", body: func(h *types.Header, b *types.Body) {
			b.Transactions = append([]*types.Transaction{b.Transactions[0]}, b.Transactions...)
			h.TxHash = types.DeriveSha(types.Transactions(b.Transactions), trie.NewStackTrie(nil))
			*h.BlobGasUsed += b.Transactions[0].BlobGas()
		}},
		{name: "uncles", want: "uncles hash", body: func(_ *types.Header, b *types.Body) {
			b.Uncles = []*types.Header{{Number: big.NewInt(3), Difficulty: new(big.Int)}}
		}},
		{name: "a withdrawal more", want: "withdrawals root", body: func(_ *types.Header, b *types.Body) {
			b.Withdrawals = append(b.Withdrawals, &types.Withdrawal{Amount: 1})
		}},
		{name: "no withdrawals", want: "withdrawals present", body: func(_ *types.Header, b *types.Body) { b.Withdrawals = nil }},
	}
	r := newReplay(t, c.genesis)
	for _, block := range c.blocks[:len(c.blocks)-1] {
		r.step(t, block)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			header, body := last.Header(), *last.Body()
			if tt.header != nil {
				tt.header(header)
			}
			if tt.body != nil {
				tt.body(header, &body)
			}
			bad := types.NewBlockWithHeader(header).WithBody(body)
			defer r.tries.Discard()
			result, err := r.execute(bad)
			invalid := new(evm.InvalidBlockError)
			if !errors.As(err, &invalid) || result != nil {
				t.Fatalf("got %v, want an InvalidBlockError", err)
			}
			if !strings.Contains(err.Error(), tt.want) || invalid.Ref.Hash != bad.Hash() {
				t.Errorf("got %q, want it to name %q and block %s", err, tt.want, bad.Hash())
			}
			if errors.Is(err, evm.ErrStateRead) {
				t.Errorf("got %v, which is a read error too", err)
			}
		})
	}
	r.step(t, last) // nothing that was refused left a trace
}

// A header that is still being built is refused, not executed, where something
// is missing.
func TestBeginWithIncompleteHeader(t *testing.T) {
	tests := []struct {
		name   string
		change func(*types.Header)
		want   string
	}{
		{"no number", func(h *types.Header) { h.Number = nil }, "number"},
		{"no difficulty", func(h *types.Header) { h.Difficulty = nil }, "difficulty"},
		{"no base fee", func(h *types.Header) { h.BaseFee = nil }, "base fee"},
		{"no excess blob gas", func(h *types.Header) { h.ExcessBlobGas = nil }, "excess blob gas"},
		{"no beacon root", func(h *types.Header) { h.ParentBeaconRoot = nil }, "parent beacon root"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, cancun())
			tt.change(w.header)
			_, err := w.rules.Begin(w.header, w.state, nil)
			invalid := new(evm.InvalidBlockError)
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an InvalidBlockError about the %s", err, tt.want)
			}
		})
	}
}

func TestUnsupported(t *testing.T) {
	bogota := *params.MergedTestChainConfig
	bogota.BogotaTime = at(500)
	clique := *params.TestChainConfig
	clique.Clique = new(params.CliqueConfig)

	if _, err := evm.NewRules(&clique); !errors.Is(err, evm.ErrUnsupported) {
		t.Errorf("clique: got %v, want ErrUnsupported", err)
	}
	rules, err := evm.NewRules(&bogota)
	if err != nil {
		t.Fatal(err)
	}
	header := &types.Header{
		Number: big.NewInt(1), Time: 500, Difficulty: new(big.Int), BaseFee: big.NewInt(7),
		ExcessBlobGas: new(uint64), ParentBeaconRoot: new(chain.Hash),
	}
	if _, err := rules.Begin(header, nil, nil); !errors.Is(err, evm.ErrUnsupported) {
		t.Errorf("a block after the last known fork: got %v, want ErrUnsupported", err)
	}
	block := types.NewBlockWithHeader(header)
	if _, err := rules.Execute(block, &types.Header{}, nil, nil, evm.Checks{}); !errors.Is(err, evm.ErrUnsupported) {
		t.Errorf("a block after the last known fork: got %v, want ErrUnsupported", err)
	}
}
