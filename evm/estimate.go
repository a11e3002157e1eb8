// SPDX-License-Identifier: Apache-2.0

package evm

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"

	"glimpse/chain"
)

// estimateError is how far above the lowest gas limit an estimate may be, in
// parts of it: wallets add more than that, and the last steps cost the most.
const estimateError = 0.015

// EstimateGas returns a gas limit with which the message succeeds, within 1.5 %
// of the lowest. The search is go-ethereum's, and so are its texts. Its errors
// are those of Call.
func (r *Rules) EstimateGas(ctx context.Context, s Scene, m ethereum.CallMsg) (uint64, error) {
	message, err := newMessage(m, s.Header.BaseFee, CallGas)
	if err != nil {
		return 0, err
	}
	e := &estimate{rules: r, ctx: ctx, scene: s, message: message}
	most, err := e.most(m.Gas)
	if err != nil {
		return 0, err
	}
	if gas, ok, err := e.transfer(); ok || err != nil {
		return gas, err
	}
	return e.search(most)
}

// An estimate is one search. It changes the gas limit of its message.
type estimate struct {
	rules   *Rules
	ctx     context.Context // of this search alone
	scene   Scene
	message *core.Message
}

// most returns the highest limit that the block, the caller, the rules and the
// sender's balance allow.
func (e *estimate) most(asked uint64) (uint64, error) {
	h, config := e.scene.Header, e.rules.config
	most := h.GasLimit
	if asked >= params.TxGas {
		most = asked
	}
	if config.IsOsaka(h.Number, h.Time) && !config.IsAmsterdam(h.Number, h.Time) {
		most = min(most, params.MaxTxGas)
	}
	if !e.message.GasFeeCap.IsZero() {
		allowance, err := e.allowance()
		if err != nil {
			return 0, err
		}
		if allowance.IsUint64() {
			most = min(most, allowance.Uint64())
		}
	}
	return min(most, CallGas), nil
}

// allowance is how much gas the sender can pay for after the value and blobs.
func (e *estimate) allowance() (*uint256.Int, error) {
	m := e.message
	sender, err := e.scene.Base.Account(m.From)
	if err != nil {
		return nil, stateReadError(err)
	}
	available := &sender.Balance
	if !m.Value.IsZero() {
		if !m.Value.Lt(available) {
			return nil, &CallError{Cause: core.ErrInsufficientFundsForTransfer}
		}
		available.Sub(available, m.Value)
	}
	if blobs := uint64(len(m.BlobHashes)); blobs > 0 && e.rules.config.IsCancun(e.scene.Header.Number, e.scene.Header.Time) {
		cost, overflow := new(uint256.Int).MulOverflow(uint256.NewInt(blobs*params.BlobTxBlobGasPerBlob), m.BlobGasFeeCap)
		if overflow || !cost.Lt(available) {
			return nil, &CallError{Cause: core.ErrInsufficientFunds}
		}
		available.Sub(available, cost)
	}
	return new(uint256.Int).Div(available, m.GasFeeCap), nil
}

// transfer tries the message with what a plain transfer takes. One that runs no
// code and succeeds needs no search.
func (e *estimate) transfer() (gas uint64, ok bool, err error) {
	m := e.message
	if len(m.Data) > 0 || m.To == nil {
		return 0, false, nil
	}
	to, err := e.scene.Base.Account(*m.To)
	if err != nil {
		return 0, false, stateReadError(err)
	}
	if to.CodeHash != (chain.Hash{}) {
		return 0, false, nil
	}
	result, err := e.try(params.TxGas)
	if failure := new(CallError); errors.As(err, &failure) {
		return 0, false, nil // the search says why
	}
	if err != nil {
		return 0, false, err
	}
	return result.UsedGas, !result.Failed(), nil
}

func (e *estimate) search(high uint64) (uint64, error) {
	result, err := e.try(high)
	switch {
	case err != nil:
		return 0, err
	case result.Failed() && errors.Is(result.Err, vm.ErrOutOfGas):
		return 0, &CallError{Cause: fmt.Errorf("gas required exceeds allowance (%d)", high)}
	case result.Failed():
		return 0, failed(result)
	}
	low := result.UsedGas - 1 // with this it fails, and with high it succeeds
	// Most messages succeed with what they use at their peak.
	if likely := (result.MaxUsedGas + params.CallStipend) * 64 / 63; likely < high {
		if low, high, err = e.narrow(low, high, likely); err != nil {
			return 0, err
		}
	}
	for low+1 < high && float64(high-low)/float64(high) >= estimateError {
		// Few messages need much more than they use.
		middle := min(low+(high-low)/2, low*2)
		if low, high, err = e.narrow(low, high, middle); err != nil {
			return 0, err
		}
	}
	return high, nil
}

// narrow replaces one end of the range by gas.
func (e *estimate) narrow(low, high, gas uint64) (newLow, newHigh uint64, err error) {
	result, err := e.try(gas)
	if err != nil {
		return 0, 0, err
	}
	if result.Failed() {
		return gas, high, nil
	}
	return low, gas, nil
}

// try runs the message with a gas limit. One that is too low to begin with, or
// higher than the rules allow, counts as out of gas.
func (e *estimate) try(gas uint64) (*core.ExecutionResult, error) {
	e.message.GasLimit = gas
	result, err := e.rules.run(e.ctx, e.scene, e.message, nil)
	failure := new(CallError)
	switch {
	case err == nil:
		return result, nil
	case errors.Is(err, core.ErrIntrinsicGas) || errors.Is(err, core.ErrGasLimitTooHigh):
		return &core.ExecutionResult{Err: vm.ErrOutOfGas}, nil
	case errors.As(err, &failure):
		return nil, &CallError{Cause: fmt.Errorf("failed with %d gas: %w", gas, failure.Cause)}
	}
	return nil, err
}
