// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
)

// receiptJSON is a receipt as callers see it. It has a root before Byzantium and
// a status since.
type receiptJSON struct {
	BlockHash         common.Hash     `json:"blockHash"`
	BlockNumber       hexutil.Uint64  `json:"blockNumber"`
	ContractAddress   *common.Address `json:"contractAddress"`
	CumulativeGasUsed hexutil.Uint64  `json:"cumulativeGasUsed"`
	EffectiveGasPrice *hexutil.Big    `json:"effectiveGasPrice"`
	From              common.Address  `json:"from"`
	GasUsed           hexutil.Uint64  `json:"gasUsed"`
	BlobGasUsed       *hexutil.Uint64 `json:"blobGasUsed,omitempty"`
	BlobGasPrice      *hexutil.Big    `json:"blobGasPrice,omitempty"`
	Logs              []*types.Log    `json:"logs"`
	LogsBloom         types.Bloom     `json:"logsBloom"`
	Root              hexutil.Bytes   `json:"root,omitempty"`
	Status            *hexutil.Uint64 `json:"status,omitempty"`
	To                *common.Address `json:"to"`
	TransactionHash   common.Hash     `json:"transactionHash"`
	TransactionIndex  hexutil.Uint64  `json:"transactionIndex"`
	Type              hexutil.Uint64  `json:"type"`
}

func newReceiptJSON(b *block, index int) (*receiptJSON, error) {
	txs, err := b.transactions()
	if err != nil {
		return nil, err
	}
	receipts, err := b.receipts()
	if err != nil {
		return nil, err
	}
	tx, receipt := txs[index], receipts[index]
	from, err := types.Sender(signer(tx), tx)
	if err != nil {
		return nil, err
	}
	r := &receiptJSON{
		BlockHash: b.hash, BlockNumber: hexutil.Uint64(b.number),
		CumulativeGasUsed: hexutil.Uint64(receipt.CumulativeGasUsed), GasUsed: hexutil.Uint64(receipt.GasUsed),
		EffectiveGasPrice: (*hexutil.Big)(receipt.EffectiveGasPrice), From: from, To: tx.To(),
		Logs: receipt.Logs, LogsBloom: receipt.Bloom, Root: receipt.PostState,
		TransactionHash: tx.Hash(), TransactionIndex: hexutil.Uint64(index), Type: hexutil.Uint64(tx.Type()),
	}
	if r.Logs == nil {
		r.Logs = []*types.Log{}
	}
	if len(receipt.PostState) == 0 {
		r.Status = (*hexutil.Uint64)(&receipt.Status)
	}
	if receipt.ContractAddress != (chain.Address{}) {
		r.ContractAddress = &receipt.ContractAddress
	}
	if tx.Type() == types.BlobTxType {
		r.BlobGasUsed, r.BlobGasPrice = (*hexutil.Uint64)(&receipt.BlobGasUsed), (*hexutil.Big)(receipt.BlobGasPrice)
	}
	return r, nil
}
