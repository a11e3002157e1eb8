// SPDX-License-Identifier: Apache-2.0

package opstack

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"

	"glimpse/chain"
)

// A jsonDeposit is what nodes answer about a deposit or a transaction that
// follows the others.
type jsonDeposit struct {
	Type       hexutil.Uint64  `json:"type"`
	Hash       *chain.Hash     `json:"hash"`
	SourceHash *chain.Hash     `json:"sourceHash"`
	From       *chain.Address  `json:"from"`
	To         *chain.Address  `json:"to"`
	Mint       *hexutil.U256   `json:"mint"`
	Value      *hexutil.U256   `json:"value"`
	Gas        *hexutil.Uint64 `json:"gas"`
	System     bool            `json:"isSystemTx"`
	Input      *hexutil.Bytes  `json:"input"`
}

// ParseTransaction reads a transaction as eth_getBlockByNumber gives it. Where it
// names its hash, that must be the one that its fields give.
func ParseTransaction(text []byte) (*Transaction, error) {
	var given jsonDeposit
	if err := json.Unmarshal(text, &given); err != nil {
		return nil, fmt.Errorf("parse transaction: %w", err)
	}
	tx, err := given.transaction(text)
	if err != nil {
		return nil, fmt.Errorf("parse transaction: %w", err)
	}
	if given.Hash != nil && *given.Hash != tx.hash {
		return nil, fmt.Errorf("parse transaction: hash %s, but its fields give %s", given.Hash, tx.hash)
	}
	return tx, nil
}

func (j *jsonDeposit) transaction(text []byte) (*Transaction, error) {
	switch j.Type {
	case DepositType:
		return j.deposit()
	case PostExecutionType:
		if j.Input == nil {
			return nil, errors.New("no input")
		}
		return DecodeTransaction(append([]byte{PostExecutionType}, *j.Input...))
	}
	signed := new(types.Transaction)
	if err := signed.UnmarshalJSON(text); err != nil {
		return nil, err
	}
	return NewSigned(signed)
}

func (j *jsonDeposit) deposit() (*Transaction, error) {
	if j.SourceHash == nil || j.From == nil || j.Value == nil || j.Gas == nil || j.Input == nil {
		return nil, errors.New("deposit without sourceHash, from, value, gas or input")
	}
	d := &Deposit{
		SourceHash: *j.SourceHash,
		From:       *j.From,
		To:         j.To,
		Value:      (*uint256.Int)(j.Value),
		Gas:        uint64(*j.Gas),
		System:     j.System,
		Data:       *j.Input,
	}
	// Some nodes write no mint as null, others as zero.
	if mint := (*uint256.Int)(j.Mint); mint != nil && !mint.IsZero() {
		d.Mint = mint
	}
	return NewDeposit(d)
}
