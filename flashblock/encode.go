// SPDX-License-Identifier: Apache-2.0

package flashblock

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/andybalholm/brotli"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
)

// Encode returns m as feeds send it in text frames.
func Encode(m *Message) ([]byte, error) {
	inMetadata, inDiff, err := wireAccessListOf(m.AccessList)
	if err != nil {
		return nil, fmt.Errorf("encode access list of flashblock %d of block %d: %w", m.Index, m.Number, err)
	}
	balances := make(map[chain.Address]*hexutil.U256, len(m.Balances))
	for addr, balance := range m.Balances {
		balances[addr] = (*hexutil.U256)(balance)
	}
	receipts := make(map[chain.Hash]wireOptional, len(m.Receipts))
	for hash, r := range m.Receipts {
		receipts[hash] = wireOptional{value: wireReceiptOf(r)}
	}
	w := wireMessage{
		PayloadID: new(hexutil.Bytes(m.Payload[:])),
		Index:     &m.Index,
		Diff:      wireDelta(&m.Delta),
		Metadata: wireMetadata{
			BlockNumber:        (*wireNumber)(&m.Number),
			NewAccountBalances: tolerant[map[chain.Address]*hexutil.U256]{value: balances},
			Receipts:           tolerant[map[chain.Hash]wireOptional]{value: receipts},
			AccessList:         inMetadata,
		},
	}
	w.Diff.AccessListData = inDiff
	if b := m.Base; b != nil {
		w.Base = &wireBase{
			ParentBeaconBlockRoot: &b.ParentBeaconRoot,
			ParentHash:            &b.ParentHash,
			FeeRecipient:          &b.FeeRecipient,
			PrevRandao:            &b.PrevRandao,
			BlockNumber:           new(hexutil.Uint64(m.Number)),
			GasLimit:              new(hexutil.Uint64(b.GasLimit)),
			Timestamp:             new(hexutil.Uint64(b.Time)),
			ExtraData:             new(hexutil.Bytes(b.ExtraData)),
			BaseFeePerGas:         (*hexutil.U256)(b.BaseFee),
		}
	}
	text, err := json.Marshal(&w)
	if err != nil {
		return nil, fmt.Errorf("encode flashblock %d of block %d: %w", m.Index, m.Number, err)
	}
	return text, nil
}

func wireDelta(d *Delta) *wireDiff {
	w := &wireDiff{
		StateRoot:       &d.StateRoot,
		ReceiptsRoot:    &d.ReceiptsRoot,
		LogsBloom:       &d.LogsBloom,
		GasUsed:         new(hexutil.Uint64(d.GasUsed)),
		BlockHash:       &d.BlockHash,
		Transactions:    make([]hexutil.Bytes, len(d.Transactions)), // a list even where empty, never null
		Withdrawals:     append([]*types.Withdrawal{}, d.Withdrawals...),
		WithdrawalsRoot: &d.WithdrawalsRoot,
		BlobGasUsed:     (*hexutil.Uint64)(d.BlobGasUsed),
	}
	if len(d.PostExecution) > 0 {
		w.PostExecTx = new(hexutil.Bytes(d.PostExecution))
	}
	for i, tx := range d.Transactions {
		w.Transactions[i] = tx
	}
	return w
}

func wireReceiptOf(r *Receipt) *wireReceipt {
	w := &wireReceipt{
		Type:                  new(hexutil.Uint64(r.Type)),
		Status:                wireStatus(r.Succeeded),
		CumulativeGasUsed:     new(hexutil.Uint64(r.CumulativeGasUsed)),
		Logs:                  make([]wireLog, len(r.Logs)),
		DepositNonce:          (*hexutil.Uint64)(r.DepositNonce),
		DepositReceiptVersion: (*hexutil.Uint64)(r.DepositVersion),
	}
	for i, l := range r.Logs {
		w.Logs[i] = wireLog{Address: &l.Address, Topics: append([]chain.Hash{}, l.Topics...), Data: new(hexutil.Bytes(l.Data))}
	}
	return w
}

// The setting of the proxies in front of public feeds.
const (
	brotliQuality = 5
	brotliWindow  = 22
)

// EncodeBrotli returns m as feeds send it in compressed binary frames.
func EncodeBrotli(m *Message) ([]byte, error) {
	text, err := Encode(m)
	if err != nil {
		return nil, err
	}
	return Compress(text)
}

// Compress returns the text of a message as feeds send it in compressed binary
// frames.
func Compress(text []byte) ([]byte, error) {
	var out bytes.Buffer
	w := brotli.NewWriterOptions(&out, brotli.WriterOptions{Quality: brotliQuality, LGWin: brotliWindow})
	_, err := w.Write(text)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("compress flashblock: %w", err)
	}
	return out.Bytes(), nil
}
