// SPDX-License-Identifier: Apache-2.0

package opstack

import (
	"bytes"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// depositVersion marks receipts that commit to the deposit's nonce, as they do
// since Canyon.
const depositVersion = 1

// A Receipt is what a transaction yielded.
type Receipt struct {
	// Common is what receipts have on Ethereum, with this transaction's own
	// type. Its encodings are those of Ethereum and leave out what follows.
	Common *types.Receipt

	// DepositNonce is the nonce that a deposit was executed with, and
	// DepositVersion is 1 since Canyon; nil for other transactions.
	DepositNonce   *uint64
	DepositVersion *uint64
}

// Receipts are those of a block in their order; types.DeriveSha gives their
// root.
type Receipts []*Receipt

// Len implements types.DerivableList.
func (r Receipts) Len() int { return len(r) }

// EncodeIndex implements types.DerivableList: it appends what the receipts root
// commits to.
func (r Receipts) EncodeIndex(i int, w *bytes.Buffer) { w.Write(r[i].Encode()) }

// Common returns the parts that receipts have on Ethereum.
func (r Receipts) Common() types.Receipts {
	common := make(types.Receipts, len(r))
	for i, receipt := range r {
		common[i] = receipt.Common
	}
	return common
}

type receiptFields struct {
	Status            []byte
	CumulativeGasUsed uint64
	Bloom             types.Bloom
	Logs              []*types.Log
	DepositNonce      *uint64 `rlp:"optional"`
	DepositVersion    *uint64 `rlp:"optional"`
}

// Encode returns what the receipts root commits to. Between Regolith and Canyon
// that does not contain the deposit's nonce, although receipts have it.
func (r *Receipt) Encode() []byte {
	fields := receiptFields{CumulativeGasUsed: r.Common.CumulativeGasUsed, Bloom: r.Common.Bloom, Logs: r.Common.Logs}
	if r.Common.Status == types.ReceiptStatusSuccessful {
		fields.Status = []byte{1}
	}
	if r.DepositVersion != nil {
		fields.DepositNonce, fields.DepositVersion = r.DepositNonce, r.DepositVersion
	}
	var out bytes.Buffer
	if r.Common.Type != types.LegacyTxType {
		out.WriteByte(r.Common.Type)
	}
	// Fields of these types always encode, and a buffer takes all.
	_ = rlp.Encode(&out, &fields)
	return out.Bytes()
}
