// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/chain"
	"glimpse/follow/upstream"
	"glimpse/internal/fixture"
)

// captured is a recorded flashblock, as far as a sealed block needs it.
type captured struct {
	Base *struct {
		BeaconRoot chain.Hash     `json:"parent_beacon_block_root"`
		Parent     chain.Hash     `json:"parent_hash"`
		Recipient  chain.Address  `json:"fee_recipient"`
		Random     chain.Hash     `json:"prev_randao"`
		Number     hexutil.Uint64 `json:"block_number"`
		GasLimit   hexutil.Uint64 `json:"gas_limit"`
		Time       hexutil.Uint64 `json:"timestamp"`
		Extra      hexutil.Bytes  `json:"extra_data"`
		BaseFee    *hexutil.Big   `json:"base_fee_per_gas"`
	} `json:"base"`
	Diff struct {
		Root            chain.Hash      `json:"state_root"`
		ReceiptsRoot    chain.Hash      `json:"receipts_root"`
		Bloom           types.Bloom     `json:"logs_bloom"`
		GasUsed         hexutil.Uint64  `json:"gas_used"`
		Hash            chain.Hash      `json:"block_hash"`
		Transactions    []hexutil.Bytes `json:"transactions"`
		WithdrawalsRoot chain.Hash      `json:"withdrawals_root"`
	} `json:"diff"`
	Metadata struct {
		Receipts map[chain.Hash]map[string]struct {
			Status  hexutil.Uint64  `json:"status"`
			Gas     hexutil.Uint64  `json:"cumulativeGasUsed"`
			Logs    []capturedLog   `json:"logs"`
			Nonce   *hexutil.Uint64 `json:"depositNonce"`
			Version *hexutil.Uint64 `json:"depositReceiptVersion"`
		} `json:"receipts"`
	} `json:"metadata"`
}

type capturedLog struct {
	Address chain.Address `json:"address"`
	Topics  []chain.Hash  `json:"topics"`
	Data    hexutil.Bytes `json:"data"`
}

// TestOPStackBlock reads a block of a real OP-Stack chain, put together from
// what was recorded of its feed, in the form that its nodes give: the deposit
// must be re-encoded, and its receipt too, or the roots are others. The root of
// its withdrawals is about something else.
func TestOPStackBlock(t *testing.T) {
	object, receipts, hash := sealedUnichain(t)
	n := newNode(small(t))
	p := open(t, n)
	n.set("eth_getBlockByHash", func([]json.RawMessage) (any, error) { return object, nil })
	b, err := p.BlockByHash(t.Context(), hash)
	if err != nil {
		t.Fatal(err)
	}
	if b.Transactions[0].Known != nil || b.Transactions[1].Known == nil || b.Withdrawals == nil {
		t.Errorf("got %+v, want a deposit first, and an empty list of withdrawals", b)
	}
	if _, err := b.Ethereum(); err == nil {
		t.Error("go-ethereum does not know deposits, and yet there is a block")
	}

	if _, err := p.Receipts(t.Context(), b); !errors.Is(err, upstream.ErrCannot) {
		t.Errorf("receipts of a node without them: got %v, want ErrCannot", err)
	}
	n.set("eth_getBlockReceipts", func([]json.RawMessage) (any, error) { return receipts, nil })
	p = open(t, n)
	if got, err := p.Receipts(t.Context(), b); err != nil || len(got) != len(receipts) {
		t.Errorf("Receipts = %v, %v", got, err)
	}
	receipts[0]["depositNonce"] = "0x1"
	var lie *upstream.LieError
	if got, err := p.Receipts(t.Context(), b); !errors.As(err, &lie) {
		t.Errorf("another deposit nonce: got %v, %v, want a LieError", got, err)
	}

	deposit := object["transactions"].([]map[string]any)[0]
	for member, value := range map[string]any{"gas": "0x1", "from": chain.Address{1}, "isSystemTx": true, "mint": "0x1", "sourceHash": chain.Hash{1}} {
		honest, had := deposit[member]
		deposit[member] = value
		if b, err := p.BlockByHash(t.Context(), hash); err == nil {
			t.Errorf("another %s: got %+v, want an error", member, b)
		}
		deposit[member] = honest
		if !had {
			delete(deposit, member)
		}
	}
}

// sealedUnichain returns the recorded block in JSON with its receipts.
func sealedUnichain(t *testing.T) (object map[string]any, receipts []map[string]any, hash chain.Hash) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(fixture.Flashblocks(t), "unichain_sepolia_35535698.full-metadata.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var first, last captured
	var txs []map[string]any
	for i, line := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
		last = captured{}
		if err := json.Unmarshal(line, &last); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = last
		}
		for _, raw := range last.Diff.Transactions {
			tx := transactionObject(t, raw)
			txs = append(txs, tx)
			for kind, r := range last.Metadata.Receipts[crypto.Keccak256Hash(raw)] {
				logs, bloom := []*types.Log{}, types.Bloom{}
				for _, l := range r.Logs {
					logs = append(logs, &types.Log{Address: l.Address, Topics: l.Topics, Data: l.Data})
				}
				bloom = types.CreateBloom(&types.Receipt{Logs: logs})
				receipt := map[string]any{
					"type": tx["type"], "status": r.Status, "cumulativeGasUsed": r.Gas, "logs": logs, "logsBloom": bloom,
					"transactionHash": tx["hash"], "gasUsed": "0x1", "contractAddress": nil,
				}
				if kind == "Deposit" {
					receipt["depositNonce"], receipt["depositReceiptVersion"] = r.Nonce, r.Version
				}
				receipts = append(receipts, receipt)
			}
		}
	}
	zero, base, diff := uint64(0), first.Base, last.Diff
	var roots [][]byte
	for _, tx := range txs {
		roots = append(roots, tx["raw"].(hexutil.Bytes))
		delete(tx, "raw")
	}
	requests := types.EmptyRequestsHash
	header := &types.Header{
		ParentHash: base.Parent, UncleHash: types.EmptyUncleHash, Coinbase: base.Recipient, Root: diff.Root,
		TxHash: rootOf(roots), ReceiptHash: diff.ReceiptsRoot, Bloom: diff.Bloom, Difficulty: new(big.Int),
		Number: new(big.Int).SetUint64(uint64(base.Number)), GasLimit: uint64(base.GasLimit), GasUsed: uint64(diff.GasUsed), Time: uint64(base.Time),
		Extra: base.Extra, MixDigest: base.Random, BaseFee: base.BaseFee.ToInt(), WithdrawalsHash: &diff.WithdrawalsRoot,
		BlobGasUsed: &zero, ExcessBlobGas: &zero, ParentBeaconRoot: &base.BeaconRoot, RequestsHash: &requests,
	}
	if header.Hash() != diff.Hash {
		t.Fatalf("the recorded block has hash %s, put together it has %s", diff.Hash, header.Hash())
	}
	object = objectOf(types.NewBlockWithHeader(header))
	object["transactions"], object["withdrawals"] = txs, []any{}
	return object, receipts, diff.Hash
}

// transactionObject is a transaction as a node of the chain gives it, with its
// encoding as raw.
func transactionObject(t *testing.T, raw hexutil.Bytes) map[string]any {
	t.Helper()
	object := make(map[string]any)
	if raw[0] != 0x7e {
		tx := new(types.Transaction)
		if err := tx.UnmarshalBinary(raw); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(tx)
		if err == nil {
			err = json.Unmarshal(text, &object)
		}
		if err != nil {
			t.Fatal(err)
		}
	} else {
		var d struct {
			Source      chain.Hash
			From, To    chain.Address
			Mint, Value *big.Int
			Gas         uint64
			System      bool
			Data        []byte
		}
		if err := rlp.DecodeBytes(raw[1:], &d); err != nil {
			t.Fatal(err)
		}
		object = map[string]any{
			"type": "0x7e", "sourceHash": d.Source, "from": d.From, "to": d.To, "value": (*hexutil.Big)(d.Value), "gas": hexutil.Uint64(d.Gas),
			"input": hexutil.Bytes(d.Data), "hash": crypto.Keccak256Hash(raw), "nonce": "0x1", "r": "0x0", "s": "0x0", "v": "0x0",
		}
		if d.Mint.Sign() > 0 {
			object["mint"] = (*hexutil.Big)(d.Mint)
		}
	}
	object["raw"] = raw
	return object
}

// A type that nobody can re-encode is fetched by its hash.
func TestUnknownTransactionTypes(t *testing.T) {
	object, _, hash := sealedUnichain(t)
	txs := object["transactions"].([]map[string]any)
	honest := txs[1]
	n := newNode(small(t))
	n.methods["eth_getBlockByHash"] = func([]json.RawMessage) (any, error) { return object, nil }
	txs[1] = map[string]any{"type": "0x7d", "hash": honest["hash"]}
	p := open(t, n)
	if b, err := p.BlockByHash(t.Context(), hash); !errors.Is(err, upstream.ErrCannot) || !strings.Contains(err.Error(), "eth_getRawTransactionByHash") {
		t.Errorf("got %+v, %v, want ErrCannot that says what is needed", b, err)
	}
	text, err := json.Marshal(honest)
	if err != nil {
		t.Fatal(err)
	}
	tx := new(types.Transaction)
	if err := tx.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	raw, err := tx.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	n.methods["eth_getRawTransactionByHash"] = func([]json.RawMessage) (any, error) { return hexutil.Bytes(raw), nil }
	p = open(t, n)
	if b, err := p.BlockByHash(t.Context(), hash); err != nil || b.Transactions[1].Hash != tx.Hash() {
		t.Errorf("got %+v, %v, want the block with its transaction", b, err)
	}
}
