// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/chain"
	"glimpse/follow/upstream"
	"glimpse/internal/chaingen"
)

// Blocks come out the same in both forms, with every type of transaction that
// there is.
func TestBlocksAreWhole(t *testing.T) {
	for _, forks := range []chaingen.Forks{chaingen.Modern, chaingen.Amsterdam} {
		w := newWorld(t, 3, 40, chaingen.Options{Forks: forks})
		for form, n := range map[string]*fakeNode{"raw": newNode(w).withRaw(), "json": newNode(w)} {
			t.Run(fmt.Sprintf("forks=%d/%s", forks, form), func(t *testing.T) {
				p := open(t, n)
				for i, want := range w.blocks {
					got, err := p.BlockByNumber(t.Context(), chain.Number(i))
					if err != nil {
						t.Fatal(err)
					}
					if byHash, err := p.BlockByHash(t.Context(), want.Hash()); err != nil || byHash.Ref != got.Ref {
						t.Errorf("BlockByHash = %+v, %v, want %+v", byHash, err, got)
					}
					block, err := got.Ethereum()
					if err != nil {
						t.Fatal(err)
					}
					if !sameBytes(t, block, want) || got.Ref != w.ref(i) {
						t.Errorf("block %d = %+v, want %+v", i, block, want)
					}
				}
				if raw := n.called("debug_getRawBlock") > len(w.blocks); raw != (form == "raw") {
					t.Errorf("debug_getRawBlock was called %d times", n.called("debug_getRawBlock"))
				}
			})
		}
	}
}

func sameBytes(t *testing.T, a, b any) bool {
	t.Helper()
	first, err := rlp.EncodeToBytes(a)
	if err != nil {
		t.Fatal(err)
	}
	second, err := rlp.EncodeToBytes(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(first) == string(second)
}

// A lie about any part of a block is refused, in both forms, whether the block
// is asked for by its hash or by its height.
func TestLiesAboutABlock(t *testing.T) {
	w := newWorld(t, 3, 6, chaingen.Options{Forks: chaingen.Amsterdam})
	number := -1
	for i, b := range w.blocks {
		if len(b.Transactions()) > 1 && len(b.Withdrawals()) > 0 {
			number = i
		}
	}
	if number < 0 {
		t.Fatal("no block has transactions and withdrawals; take another seed")
	}
	honest := w.blocks[number]
	header := func(change func(*types.Header)) func() *types.Block {
		return func() *types.Block {
			h := honest.Header()
			change(h)
			return types.NewBlockWithHeader(h).WithBody(*honest.Body())
		}
	}
	body := func(change func(*types.Body)) func() *types.Block {
		return func() *types.Block {
			b := *honest.Body()
			change(&b)
			return types.NewBlockWithHeader(honest.Header()).WithBody(b)
		}
	}
	other := chain.Hash{1}
	zero := uint64(77)
	lies := []struct {
		name string
		lie  func() *types.Block
	}{
		{"parent", header(func(h *types.Header) { h.ParentHash = other })},
		{"uncle hash", header(func(h *types.Header) { h.UncleHash = other })},
		{"coinbase", header(func(h *types.Header) { h.Coinbase = chain.Address{1} })},
		{"state root", header(func(h *types.Header) { h.Root = other })},
		{"transactions root", header(func(h *types.Header) { h.TxHash = other })},
		{"receipts root", header(func(h *types.Header) { h.ReceiptHash = other })},
		{"bloom", header(func(h *types.Header) { h.Bloom[0]++ })},
		{"difficulty", header(func(h *types.Header) { h.Difficulty = big.NewInt(1) })},
		{"number", header(func(h *types.Header) { h.Number = big.NewInt(99) })},
		{"gas limit", header(func(h *types.Header) { h.GasLimit++ })},
		{"gas used", header(func(h *types.Header) { h.GasUsed++ })},
		{"time", header(func(h *types.Header) { h.Time++ })},
		{"extra data", header(func(h *types.Header) { h.Extra = []byte{1} })},
		{"mix digest", header(func(h *types.Header) { h.MixDigest = other })},
		{"nonce", header(func(h *types.Header) { h.Nonce[0]++ })},
		{"base fee", header(func(h *types.Header) { h.BaseFee = big.NewInt(5) })},
		{"withdrawals root", header(func(h *types.Header) { h.WithdrawalsHash = &other })},
		{"blob gas", header(func(h *types.Header) { h.BlobGasUsed = &zero })},
		{"excess blob gas", header(func(h *types.Header) { h.ExcessBlobGas = &zero })},
		{"beacon root", header(func(h *types.Header) { h.ParentBeaconRoot = &other })},
		{"requests hash", header(func(h *types.Header) { h.RequestsHash = &other })},
		{"access list hash", header(func(h *types.Header) { h.BlockAccessListHash = &other })},
		{"slot number", header(func(h *types.Header) { h.SlotNumber = &zero })},
		{"a transaction less", body(func(b *types.Body) { b.Transactions = b.Transactions[1:] })},
		{"a transaction twice", body(func(b *types.Body) { b.Transactions = append(b.Transactions, b.Transactions[0]) })},
		{"transactions in another order", body(func(b *types.Body) {
			b.Transactions = append(types.Transactions{b.Transactions[1], b.Transactions[0]}, b.Transactions[2:]...)
		})},
		{"no withdrawals", body(func(b *types.Body) { b.Withdrawals = types.Withdrawals{} })},
		{"another withdrawal", body(func(b *types.Body) {
			w := *b.Withdrawals[0]
			w.Amount++
			b.Withdrawals = append(types.Withdrawals{&w}, b.Withdrawals[1:]...)
		})},
	}
	for _, form := range []string{"raw", "json"} {
		for _, tt := range lies {
			t.Run(form+"/"+tt.name, func(t *testing.T) {
				n := newNode(w).withRaw()
				if form == "json" {
					n = newNode(w)
				}
				p := open(t, n)
				lie := tt.lie()
				raw, err := rlp.EncodeToBytes(lie)
				if err != nil {
					t.Fatal(err)
				}
				if form == "raw" {
					n.set("debug_getRawBlock", func([]json.RawMessage) (any, error) { return hexutil.Bytes(raw), nil })
				}
				object := objectOf(lie)
				object["hash"] = honest.Hash()
				answer := func([]json.RawMessage) (any, error) { return object, nil }
				n.set("eth_getBlockByHash", answer)
				n.set("eth_getBlockByNumber", answer)
				var refused *upstream.LieError
				if b, err := p.BlockByHash(t.Context(), honest.Hash()); !errors.As(err, &refused) || refused.Upstream != "http://node" {
					t.Errorf("by hash: got %+v, %v, want a LieError of the node", b, err)
				}
				// By height the raw form is a block of its own: nobody said which.
				if form == "raw" && lie.Hash() != honest.Hash() && lie.NumberU64() == uint64(number) && lie.Header().TxHash == honest.TxHash() &&
					lie.Header().UncleHash == honest.UncleHash() && *lie.Header().WithdrawalsHash == *honest.Header().WithdrawalsHash {
					return
				}
				if b, err := p.BlockByNumber(t.Context(), chain.Number(number)); !errors.As(err, &refused) {
					t.Errorf("by number: got %+v, %v, want a LieError", b, err)
				}
			})
		}
	}
}

func TestOddBlocksAreErrors(t *testing.T) {
	w := small(t)
	good, err := json.Marshal(objectOf(w.blocks[3]))
	if err != nil {
		t.Fatal(err)
	}
	without := func(member string) string {
		var object map[string]any
		if err := json.Unmarshal(good, &object); err != nil {
			t.Fatal(err)
		}
		delete(object, member)
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	tests := []struct{ name, result string }{
		{"text", `"0x"`},
		{"nothing in it", `{}`},
		{"no hash", without("hash")},
		{"no number", without("number")},
		{"no parent", without("parentHash")},
		{"no transactions", without("transactions")},
		{"no base fee", without("baseFeePerGas")},
		{"transactions by hash only", strings.Replace(without("transactions"), "{", `{"transactions":["0x`+strings.Repeat("11", 32)+`"],`, 1)},
		{"a null transaction", strings.Replace(without("transactions"), "{", `{"transactions":[null],`, 1)},
		{"uncles", strings.Replace(without("uncles"), "{", `{"uncles":["0x`+strings.Repeat("11", 32)+`"],`, 1)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(w)
			p := open(t, n)
			n.set("eth_getBlockByHash", func([]json.RawMessage) (any, error) { return json.RawMessage(tt.result), nil })
			if b, err := p.BlockByHash(t.Context(), w.blocks[3].Hash()); err == nil || errors.Is(err, upstream.ErrNotFound) {
				t.Errorf("got %+v, %v, want an error", b, err)
			}
		})
	}
	p := open(t, newNode(w).withRaw())
	if b, err := p.BlockByHash(t.Context(), chain.Hash{1}); !errors.Is(err, upstream.ErrNotFound) {
		t.Errorf("a hash that nobody has: got %+v, %v, want ErrNotFound", b, err)
	}
	if b, err := p.BlockByNumber(t.Context(), 1000); !errors.Is(err, upstream.ErrNotFound) {
		t.Errorf("a block of the future: got %+v, %v, want ErrNotFound", b, err)
	}
}

func TestReceipts(t *testing.T) {
	w := newWorld(t, 3, 40, chaingen.Options{})
	n := newNode(w)
	change := func(list []*types.Receipt) []*types.Receipt { return list }
	n.methods["eth_getBlockReceipts"] = func(p []json.RawMessage) (any, error) {
		b, err := n.find(p[0])
		if b == nil || err != nil {
			return nil, err
		}
		if b.NumberU64() == 0 {
			return []*types.Receipt{}, nil
		}
		list := make([]*types.Receipt, len(b.Transactions()))
		for i, r := range w.results[b.NumberU64()].Receipts {
			list[i] = new(types.Receipt)
			*list[i] = *r
			list[i].Logs = append([]*types.Log{}, r.Logs...) // never null in JSON
		}
		return change(list), nil
	}
	p := open(t, n)
	var some *upstream.Block
	for i := range w.blocks {
		b, err := p.BlockByNumber(t.Context(), chain.Number(i))
		if err != nil {
			t.Fatal(err)
		}
		receipts, err := p.Receipts(t.Context(), b)
		if err != nil || len(receipts) != len(b.Transactions) {
			t.Fatalf("block %d: %d receipts, %v, want %d", i, len(receipts), err, len(b.Transactions))
		}
		if len(receipts) > 1 {
			some = b
		}
	}
	lies := []struct {
		name string
		lie  func([]*types.Receipt) []*types.Receipt
	}{
		{"one less", func(l []*types.Receipt) []*types.Receipt { return l[1:] }},
		{"status", func(l []*types.Receipt) []*types.Receipt { l[0].Status ^= 1; return l }},
		{"gas", func(l []*types.Receipt) []*types.Receipt { l[0].CumulativeGasUsed++; return l }},
		{"bloom", func(l []*types.Receipt) []*types.Receipt { l[0].Bloom[3]++; return l }},
		{"another transaction", func(l []*types.Receipt) []*types.Receipt { l[0].TxHash[0]++; return l }},
		{"a log", func(l []*types.Receipt) []*types.Receipt {
			l[0].Logs = append(l[0].Logs, &types.Log{Topics: []chain.Hash{{1}}, Data: []byte{1}})
			return l
		}},
	}
	for _, tt := range lies {
		t.Run(tt.name, func(t *testing.T) {
			change = tt.lie
			var lie *upstream.LieError
			if receipts, err := p.Receipts(t.Context(), some); !errors.As(err, &lie) {
				t.Errorf("got %v, %v, want a LieError", receipts, err)
			}
		})
	}
}
