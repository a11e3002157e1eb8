// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"

	"glimpse/chain"
	"glimpse/devchain"
	"glimpse/flashblock"
)

// newMessage puts what the embedded chain promises into the form of a feed.
func newMessage(f *devchain.Flashblock) (*flashblock.Message, error) {
	h := f.Header
	m := &flashblock.Message{
		Payload: f.PayloadID,
		Index:   f.Index,
		Number:  chain.Number(h.Number.Uint64()),
		Delta: flashblock.Delta{
			GasUsed:      h.GasUsed,
			ReceiptsRoot: h.ReceiptHash,
			LogsBloom:    h.Bloom,
			Withdrawals:  []*types.Withdrawal{},
			BlobGasUsed:  h.BlobGasUsed,
		},
		Balances: make(map[chain.Address]*uint256.Int, len(f.Balances)),
		Receipts: make(map[chain.Hash]*flashblock.Receipt, len(f.Receipts)),
	}
	if f.Index == 0 {
		m.Base = newBase(h)
	}
	for _, tx := range f.Transactions {
		raw, err := tx.MarshalBinary()
		if err != nil {
			return nil, fmt.Errorf("encode transaction %s: %w", tx.Hash(), err)
		}
		m.Delta.Transactions = append(m.Delta.Transactions, raw)
	}
	for addr, balance := range f.Balances {
		m.Balances[addr] = &balance
	}
	for _, r := range f.Receipts {
		m.Receipts[r.TxHash] = newReceipt(r)
	}
	return m, nil
}

func newBase(h *types.Header) *flashblock.Base {
	b := &flashblock.Base{
		ParentHash: h.ParentHash, FeeRecipient: h.Coinbase, PrevRandao: h.MixDigest,
		GasLimit: h.GasLimit, Time: h.Time, ExtraData: h.Extra, BaseFee: new(uint256.Int),
	}
	if h.ParentBeaconRoot != nil {
		b.ParentBeaconRoot = *h.ParentBeaconRoot
	}
	if h.BaseFee != nil {
		b.BaseFee.SetFromBig(h.BaseFee)
	}
	return b
}

func newReceipt(r *types.Receipt) *flashblock.Receipt {
	out := &flashblock.Receipt{
		Type: r.Type, Succeeded: r.Status == types.ReceiptStatusSuccessful,
		CumulativeGasUsed: r.CumulativeGasUsed, Logs: make([]flashblock.Log, len(r.Logs)),
	}
	for i, l := range r.Logs {
		out.Logs[i] = flashblock.Log{Address: l.Address, Topics: l.Topics, Data: l.Data}
	}
	return out
}
