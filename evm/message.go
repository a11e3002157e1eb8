// SPDX-License-Identifier: Apache-2.0

package evm

import (
	"errors"
	"math/big"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/core"
	"github.com/holiman/uint256"
)

var (
	errTwoPrices  = errors.New("both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified")
	errNoBaseFee  = errors.New("maxFeePerGas and maxPriorityFeePerGas are not valid before London is active")
	errTooLarge   = errors.New("number of more than 256 bits")
	errBlobFeeCap = errors.New("maxFeePerBlobGas specified without blobVersionedHashes")
)

// newMessage fills in what a call leaves out, as go-ethereum does: it has the
// texts that clients know. Gas is the most that the call may have, and what it
// gets where it does not say.
func newMessage(m ethereum.CallMsg, baseFee *big.Int, gas uint64) (*core.Message, error) {
	if err := checkCall(m, baseFee); err != nil {
		return nil, &CallError{Cause: err}
	}
	if m.Gas != 0 {
		gas = min(gas, m.Gas)
	}
	message := &core.Message{
		From:                  m.From,
		To:                    m.To,
		GasLimit:              gas,
		Data:                  m.Data,
		AccessList:            m.AccessList,
		BlobHashes:            m.BlobHashes,
		SetCodeAuthorizations: m.AuthorizationList,
	}
	var large [5]bool
	message.Value, large[0] = number(m.Value)
	message.GasPrice, large[1] = number(m.GasPrice)
	message.GasFeeCap, large[2] = number(m.GasFeeCap)
	message.GasTipCap, large[3] = number(m.GasTipCap)
	if m.BlobGasFeeCap != nil || m.BlobHashes != nil {
		message.BlobGasFeeCap, large[4] = number(m.BlobGasFeeCap)
	}
	if large != [5]bool{} {
		return nil, &CallError{Cause: errTooLarge}
	}
	if m.GasPrice != nil || baseFee == nil {
		message.GasFeeCap, message.GasTipCap = message.GasPrice, message.GasPrice
	} else {
		message.GasPrice = effectivePrice(message, uint256.MustFromBig(baseFee))
	}
	return message.SkipNonceCheck().SkipEOACheck().SkipGasLimitCapCheck(), nil
}

func checkCall(m ethereum.CallMsg, baseFee *big.Int) error {
	dynamic := m.GasFeeCap != nil || m.GasTipCap != nil
	switch {
	case m.GasPrice != nil && dynamic:
		return errTwoPrices
	case dynamic && baseFee == nil:
		return errNoBaseFee
	case m.BlobGasFeeCap != nil && len(m.BlobHashes) == 0:
		return errBlobFeeCap
	case m.To == nil && m.BlobHashes != nil:
		return core.ErrBlobTxCreate
	case m.To == nil && m.AuthorizationList != nil:
		return core.ErrSetCodeTxCreate
	}
	return nil
}

// effectivePrice is zero where the call names no fees at all.
func effectivePrice(m *core.Message, baseFee *uint256.Int) *uint256.Int {
	if m.GasFeeCap.IsZero() && m.GasTipCap.IsZero() {
		return new(uint256.Int)
	}
	price, overflow := new(uint256.Int).AddOverflow(m.GasTipCap, baseFee)
	if overflow || price.Gt(m.GasFeeCap) {
		return m.GasFeeCap
	}
	return price
}

// number is zero for one that is not given.
func number(n *big.Int) (v *uint256.Int, large bool) {
	if n == nil {
		return new(uint256.Int), false
	}
	return uint256.FromBig(n)
}
