// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/chain"
)

// deposit is an OP-Stack deposit transaction in the order of its encoding.
type deposit struct {
	SourceHash chain.Hash
	From       chain.Address
	To         *chain.Address `rlp:"nil"` // nil creates a contract
	Mint       *big.Int       `rlp:"nil"` // nil mints nothing
	Value      *big.Int
	Gas        uint64
	IsSystem   bool
	Data       []byte
}

// encodeDeposit returns the EIP-2718 form of a deposit in JSON.
func encodeDeposit(text json.RawMessage) ([]byte, error) {
	var d struct {
		SourceHash *chain.Hash     `json:"sourceHash"`
		From       *chain.Address  `json:"from"`
		To         *chain.Address  `json:"to"`
		Mint       *hexutil.Big    `json:"mint"`
		Value      *hexutil.Big    `json:"value"`
		Gas        *hexutil.Uint64 `json:"gas"`
		IsSystem   bool            `json:"isSystemTx"`
		Input      *hexutil.Bytes  `json:"input"`
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("deposit: %w", err)
	}
	if d.SourceHash == nil || d.From == nil || d.Value == nil || d.Gas == nil || d.Input == nil {
		return nil, errors.New("deposit without sourceHash, from, value, gas or input")
	}
	body, err := rlp.EncodeToBytes(&deposit{
		SourceHash: *d.SourceHash,
		From:       *d.From,
		To:         d.To,
		Mint:       d.Mint.ToInt(),
		Value:      d.Value.ToInt(),
		Gas:        uint64(*d.Gas),
		IsSystem:   d.IsSystem,
		Data:       *d.Input,
	})
	if err != nil {
		return nil, fmt.Errorf("deposit: %w", err)
	}
	return append([]byte{depositType}, body...), nil
}
