// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// blockJSON is a block as eth_getBlockBy* answers it.
type blockJSON struct {
	Number           hexutil.Uint64    `json:"number"`
	Hash             *common.Hash      `json:"hash"` // null while pre-confirmed
	ParentHash       common.Hash       `json:"parentHash"`
	Nonce            *types.BlockNonce `json:"nonce"` // null while pre-confirmed
	MixHash          common.Hash       `json:"mixHash"`
	Sha3Uncles       common.Hash       `json:"sha3Uncles"`
	LogsBloom        types.Bloom       `json:"logsBloom"`
	StateRoot        common.Hash       `json:"stateRoot"`
	Miner            common.Address    `json:"miner"`
	Difficulty       *hexutil.Big      `json:"difficulty"`
	ExtraData        hexutil.Bytes     `json:"extraData"`
	GasLimit         hexutil.Uint64    `json:"gasLimit"`
	GasUsed          hexutil.Uint64    `json:"gasUsed"`
	Timestamp        hexutil.Uint64    `json:"timestamp"`
	TransactionsRoot common.Hash       `json:"transactionsRoot"`
	ReceiptsRoot     common.Hash       `json:"receiptsRoot"`
	BaseFeePerGas    *hexutil.Big      `json:"baseFeePerGas,omitempty"`
	WithdrawalsRoot  *common.Hash      `json:"withdrawalsRoot,omitempty"`
	BlobGasUsed      *hexutil.Uint64   `json:"blobGasUsed,omitempty"`
	ExcessBlobGas    *hexutil.Uint64   `json:"excessBlobGas,omitempty"`
	ParentBeaconRoot *common.Hash      `json:"parentBeaconBlockRoot,omitempty"`
	RequestsHash     *common.Hash      `json:"requestsHash,omitempty"`
	AccessListHash   *common.Hash      `json:"blockAccessListHash,omitempty"`
	SlotNumber       *hexutil.Uint64   `json:"slotNumber,omitempty"`
	Size             hexutil.Uint64    `json:"size"`
	Transactions     []any             `json:"transactions"` // hashes, or transactionJSON
	Uncles           []common.Hash     `json:"uncles"`
}

// newBlockJSON renders block; full asks for whole transactions in place of
// their hashes. An empty list of withdrawals is written, an absent one is not.
func newBlockJSON(of *block, full bool) (any, error) {
	parts, err := of.outline()
	if err != nil {
		return nil, err
	}
	h := of.header
	b := blockJSON{
		Number: hexutil.Uint64(h.Number.Uint64()), Hash: &of.hash, ParentHash: h.ParentHash,
		Nonce: &h.Nonce, MixHash: h.MixDigest, Sha3Uncles: h.UncleHash, LogsBloom: h.Bloom,
		StateRoot: h.Root, Miner: h.Coinbase, Difficulty: (*hexutil.Big)(h.Difficulty),
		ExtraData: h.Extra, GasLimit: hexutil.Uint64(h.GasLimit), GasUsed: hexutil.Uint64(h.GasUsed),
		Timestamp: hexutil.Uint64(h.Time), TransactionsRoot: h.TxHash, ReceiptsRoot: h.ReceiptHash,
		BaseFeePerGas: (*hexutil.Big)(h.BaseFee), WithdrawalsRoot: h.WithdrawalsHash,
		BlobGasUsed: (*hexutil.Uint64)(h.BlobGasUsed), ExcessBlobGas: (*hexutil.Uint64)(h.ExcessBlobGas),
		ParentBeaconRoot: h.ParentBeaconRoot, RequestsHash: h.RequestsHash,
		AccessListHash: h.BlockAccessListHash, SlotNumber: (*hexutil.Uint64)(h.SlotNumber),
		Size:         hexutil.Uint64(parts.size),
		Transactions: make([]any, len(parts.transactions)),
		Uncles:       parts.uncles,
	}
	if of.hash == (common.Hash{}) {
		b.Hash, b.Nonce = nil, nil
	}
	for i, hash := range parts.transactions {
		if !full {
			b.Transactions[i] = hash
			continue
		}
		t, err := newIncludedJSON(of, i)
		if err != nil {
			return nil, err
		}
		b.Transactions[i] = t
	}
	if parts.withdrawals == nil {
		return b, nil
	}
	return struct {
		blockJSON
		Withdrawals types.Withdrawals `json:"withdrawals"`
	}{b, parts.withdrawals}, nil
}

// transactionJSON is a transaction. Where it is, is null while it waits. Of a
// pre-confirmed block the hash is zero: some clients insist on one.
type transactionJSON struct {
	BlockHash            *common.Hash                 `json:"blockHash"`
	BlockNumber          *hexutil.Uint64              `json:"blockNumber"`
	BlockTimestamp       *hexutil.Uint64              `json:"blockTimestamp"`
	From                 common.Address               `json:"from"`
	Gas                  hexutil.Uint64               `json:"gas"`
	GasPrice             *hexutil.Big                 `json:"gasPrice"`
	MaxFeePerGas         *hexutil.Big                 `json:"maxFeePerGas,omitempty"`
	MaxPriorityFeePerGas *hexutil.Big                 `json:"maxPriorityFeePerGas,omitempty"`
	MaxFeePerBlobGas     *hexutil.Big                 `json:"maxFeePerBlobGas,omitempty"`
	Hash                 common.Hash                  `json:"hash"`
	Input                hexutil.Bytes                `json:"input"`
	Nonce                hexutil.Uint64               `json:"nonce"`
	To                   *common.Address              `json:"to"`
	TransactionIndex     *hexutil.Uint64              `json:"transactionIndex"`
	Value                *hexutil.Big                 `json:"value"`
	Type                 hexutil.Uint64               `json:"type"`
	AccessList           *types.AccessList            `json:"accessList,omitempty"`
	ChainID              *hexutil.Big                 `json:"chainId,omitempty"`
	BlobVersionedHashes  []common.Hash                `json:"blobVersionedHashes,omitempty"`
	AuthorizationList    []types.SetCodeAuthorization `json:"authorizationList,omitempty"`
	V                    *hexutil.Big                 `json:"v"`
	R                    *hexutil.Big                 `json:"r"`
	S                    *hexutil.Big                 `json:"s"`
	YParity              *hexutil.Uint64              `json:"yParity,omitempty"`
}

// newIncludedJSON renders a transaction of a block.
func newIncludedJSON(b *block, index int) (*transactionJSON, error) {
	txs, err := b.transactions()
	if err != nil {
		return nil, err
	}
	t, err := newTransactionJSON(txs[index], b.header.BaseFee)
	if err != nil {
		return nil, err
	}
	number, time, at := hexutil.Uint64(b.number), hexutil.Uint64(b.header.Time), hexutil.Uint64(index)
	t.BlockHash, t.BlockNumber, t.BlockTimestamp, t.TransactionIndex = &b.hash, &number, &time, &at
	return t, nil
}

// newTransactionJSON renders a transaction without saying where it is. The base
// fee is that of its block, nil where it has none.
func newTransactionJSON(tx *types.Transaction, baseFee *big.Int) (*transactionJSON, error) {
	from, err := types.Sender(signer(tx), tx)
	if err != nil {
		return nil, err
	}
	v, r, s := tx.RawSignatureValues()
	t := &transactionJSON{
		Type: hexutil.Uint64(tx.Type()), From: from, To: tx.To(), Hash: tx.Hash(),
		Gas: hexutil.Uint64(tx.Gas()), GasPrice: (*hexutil.Big)(tx.GasPrice()),
		Input: tx.Data(), Nonce: hexutil.Uint64(tx.Nonce()), Value: (*hexutil.Big)(tx.Value()),
		V: (*hexutil.Big)(v), R: (*hexutil.Big)(r), S: (*hexutil.Big)(s),
	}
	if id := tx.ChainId(); tx.Type() != types.LegacyTxType || id.Sign() != 0 {
		t.ChainID = (*hexutil.Big)(id)
	}
	if tx.Type() == types.LegacyTxType {
		return t, nil
	}
	accesses, parity := tx.AccessList(), hexutil.Uint64(v.Uint64())
	if accesses == nil {
		accesses = types.AccessList{}
	}
	t.AccessList, t.YParity = &accesses, &parity
	if tx.Type() == types.AccessListTxType {
		return t, nil
	}
	t.GasPrice = (*hexutil.Big)(effectiveGasPrice(tx, baseFee))
	t.MaxFeePerGas, t.MaxPriorityFeePerGas = (*hexutil.Big)(tx.GasFeeCap()), (*hexutil.Big)(tx.GasTipCap())
	t.AuthorizationList = tx.SetCodeAuthorizations()
	if tx.Type() == types.BlobTxType {
		t.MaxFeePerBlobGas, t.BlobVersionedHashes = (*hexutil.Big)(tx.BlobGasFeeCap()), tx.BlobHashes()
	}
	return t, nil
}

// signer returns one that recovers the sender under whatever rules tx was
// accepted: that they were the right ones was checked when its block came in.
func signer(tx *types.Transaction) types.Signer {
	if !tx.Protected() {
		return types.FrontierSigner{}
	}
	return types.LatestSignerForChainID(tx.ChainId())
}

// effectiveGasPrice is what the sender paid: the base fee and the tip, but
// never more than the cap. What waits may come to pay the cap.
func effectiveGasPrice(tx *types.Transaction, baseFee *big.Int) *big.Int {
	if baseFee == nil {
		return tx.GasFeeCap()
	}
	price := new(big.Int).Add(tx.GasTipCap(), baseFee)
	if price.Cmp(tx.GasFeeCap()) > 0 {
		return tx.GasFeeCap()
	}
	return price
}
