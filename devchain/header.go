// SPDX-License-Identifier: Apache-2.0

package devchain

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/consensus/misc/eip1559"
	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"glimpse/chain"
	"glimpse/evm"
)

// extraData is what the blocks say about who made them.
const extraData = "glimpse"

// A start is what a block is begun with beside its parent.
type start struct {
	coinbase chain.Address
	at       time.Time

	// replaces is the block that this one is built instead of, zero for none. It
	// changes the block's randomness, so that the two differ even if they have
	// the same transactions and date.
	replaces chain.Hash
}

// newHeader returns the header of the block after parent, as far as it is fixed
// before the first transaction. The gas limit stays what it is.
func newHeader(rules *evm.Rules, parent *types.Header, s start) (*types.Header, error) {
	config := rules.Config()
	number, date := new(big.Int).Add(parent.Number, big.NewInt(1)), max(parent.Time+1, uint64(s.at.Unix()))
	if !config.IsLondon(number) || config.TerminalTotalDifficulty == nil {
		return nil, fmt.Errorf("%w: block %v would be from before the merge", evm.ErrUnsupported, number)
	}
	if config.IsAmsterdam(number, date) {
		return nil, fmt.Errorf("%w: block %v would be past the Amsterdam fork", evm.ErrUnsupported, number)
	}
	parentHash := parent.Hash()
	h := &types.Header{
		ParentHash:  parentHash,
		UncleHash:   types.EmptyUncleHash,
		Coinbase:    s.coinbase,
		TxHash:      types.EmptyTxsHash,
		ReceiptHash: types.EmptyReceiptsHash,
		Difficulty:  new(big.Int),
		Number:      number,
		GasLimit:    parent.GasLimit,
		Time:        date,
		Extra:       []byte(extraData),
		MixDigest:   derive("prevrandao", parentHash, s.replaces),
		BaseFee:     eip1559.CalcBaseFee(config, parent),
	}
	if config.IsShanghai(number, date) {
		h.WithdrawalsHash = &types.EmptyWithdrawalsHash
	}
	if config.IsCancun(number, date) {
		excess, beacon := eip4844.CalcExcessBlobGas(config, parent, date), derive("beacon root", parentHash)
		h.ExcessBlobGas, h.BlobGasUsed, h.ParentBeaconRoot = &excess, new(uint64), &beacon
	}
	return h, nil
}

// payloadID names a build. Builds on the same parent, which may have the same
// date, differ by the moment at which they were begun.
func payloadID(parent chain.Hash, begun time.Time) (id [8]byte) {
	var moment chain.Hash
	binary.BigEndian.PutUint64(moment[:], uint64(begun.UnixNano()))
	hash := derive("payload", parent, moment)
	copy(id[:], hash[:])
	return id
}

// derive stands for what a beacon chain would bring: a value that nobody can
// tell from a random one, and that is the same whenever it is derived.
func derive(what string, from ...chain.Hash) chain.Hash {
	data := []byte(extraData + " " + what)
	for _, h := range from {
		data = append(data, h[:]...)
	}
	return crypto.Keccak256Hash(data)
}
