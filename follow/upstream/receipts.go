// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
)

// Receipts fetches the receipts of a block, which have the root that its header
// commits to. What that root does not cover, such as contract addresses and the
// gas of one transaction, is the upstream's word. ErrCannot where no upstream
// has eth_getBlockReceipts.
//
// Receipts before Byzantium, which hold state roots, are verified as well where
// the upstream gives these.
func (p *Pool) Receipts(ctx context.Context, b *Block) (receipts types.Receipts, err error) {
	if len(b.Transactions) == 0 {
		return types.Receipts{}, nil
	}
	able := func(c *Capabilities) bool { return c.Receipts }
	err = p.on(ctx, able, func(ctx context.Context, e *endpoint) (err error) {
		receipts, err = e.receipts(ctx, b)
		return err
	})
	return receipts, err
}

func (e *endpoint) receipts(ctx context.Context, b *Block) (types.Receipts, error) {
	result, err := e.call(ctx, "eth_getBlockReceipts", b.Hash)
	if err != nil {
		return nil, notFound(err)
	}
	var texts []json.RawMessage
	if err := json.Unmarshal(result, &texts); err != nil {
		return nil, e.fail("eth_getBlockReceipts", fmt.Errorf("%w: %w", errMalformed, err))
	}
	lie := func(format string, args ...any) error {
		return &LieError{Upstream: e.name, Block: b.Ref, What: fmt.Sprintf(format, args...)}
	}
	if len(texts) != len(b.Transactions) {
		return nil, lie("%d receipts for %d transactions", len(texts), len(b.Transactions))
	}
	receipts, encoded := make(types.Receipts, len(texts)), make(rawList, len(texts))
	for i, text := range texts {
		if receipts[i], encoded[i], err = decodeReceipt(text); err != nil {
			return nil, e.fail("eth_getBlockReceipts", fmt.Errorf("%w: receipt %d: %w", errMalformed, i, err))
		}
		if want := b.Transactions[i].Hash; receipts[i].TxHash != want {
			return nil, lie("receipt %d is of transaction %s, want %s", i, receipts[i].TxHash, want)
		}
	}
	if root := types.DeriveSha(encoded, trie.NewStackTrie(nil)); root != b.Header.ReceiptHash {
		return nil, lie("the receipts have root %s, want %s", root, b.Header.ReceiptHash)
	}
	return receipts, nil
}

// decodeReceipt also returns the form that the receipts root is made of.
func decodeReceipt(text json.RawMessage) (*types.Receipt, []byte, error) {
	r := new(types.Receipt)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, nil, err
	}
	if r.Type != depositType {
		raw, err := r.MarshalBinary()
		return r, raw, err
	}
	raw, err := encodeDepositReceipt(text, r)
	return r, raw, err
}

// encodeDepositReceipt encodes what OP-Stack chains commit to. Before Canyon,
// which brought the version, the nonce is not part of that.
func encodeDepositReceipt(text json.RawMessage, r *types.Receipt) ([]byte, error) {
	var extra struct {
		Nonce   *hexutil.Uint64 `json:"depositNonce"`
		Version *hexutil.Uint64 `json:"depositReceiptVersion"`
	}
	if err := json.Unmarshal(text, &extra); err != nil {
		return nil, err
	}
	wire := struct {
		Status            []byte
		CumulativeGasUsed uint64
		Bloom             types.Bloom
		Logs              []*types.Log
		Nonce             *uint64 `rlp:"optional"`
		Version           *uint64 `rlp:"optional"`
	}{CumulativeGasUsed: r.CumulativeGasUsed, Bloom: r.Bloom, Logs: r.Logs}
	if r.Status == types.ReceiptStatusSuccessful {
		wire.Status = []byte{1}
	}
	if extra.Version != nil && extra.Nonce == nil {
		return nil, fmt.Errorf("a deposit's receipt has a version and no nonce")
	}
	if extra.Version != nil {
		wire.Nonce, wire.Version = (*uint64)(extra.Nonce), (*uint64)(extra.Version)
	}
	body, err := rlp.EncodeToBytes(&wire)
	if err != nil {
		return nil, err
	}
	return append([]byte{depositType}, body...), nil
}
