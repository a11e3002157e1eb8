// SPDX-License-Identifier: Apache-2.0

package evm

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"

	"glimpse/chain"
)

// CallGas is what a call may spend at most, and does where it does not say.
const CallGas = 50_000_000

// A Scene is where a call takes place: in the block of Header, on top of the
// state Base.
type Scene struct {
	Header *types.Header

	// BlobBaseFee replaces the one that follows from Header, where not nil.
	BlobBaseFee *big.Int

	Base      chain.View
	Ancestors Ancestors
}

// A CallError says why a call has no result: its own code failed, or a
// transaction like it could not be in any block. It is the caller's to know.
type CallError struct {
	Cause error

	// Reverted says that the code ended with REVERT, and Revert is the data it
	// gave, for which Error has words if it is an ABI error.
	Reverted bool
	Revert   []byte
}

func (e *CallError) Error() string {
	if reason, err := abi.UnpackRevert(e.Revert); e.Reverted && err == nil {
		return e.Cause.Error() + ": " + reason
	}
	return e.Cause.Error()
}

func (e *CallError) Unwrap() error { return e.Cause }

// A CallResult is what a call that succeeded yields.
type CallResult struct {
	Output  []byte
	GasUsed uint64
}

// Call executes a message and throws its changes away. Sender, nonce and gas
// price are not checked as they are for a transaction: a price of zero is fine
// whatever the base fee, and the sender may have code.
//
// The error is a *CallError, or wraps ErrStateRead, ErrUnsupported, or ctx's
// error where the call was ended by it.
func (r *Rules) Call(ctx context.Context, s Scene, m ethereum.CallMsg) (*CallResult, error) {
	message, err := newMessage(m, s.Header.BaseFee, CallGas)
	if err != nil {
		return nil, err
	}
	result, err := r.run(ctx, s, message.SkipExecutionGasCapCheck(), nil)
	if failure := new(CallError); errors.As(err, &failure) {
		return nil, &CallError{Cause: fmt.Errorf("err: %w (supplied gas %d)", failure.Cause, message.GasLimit)}
	}
	if err != nil {
		return nil, err
	}
	if result.Failed() {
		return nil, failed(result)
	}
	return &CallResult{Output: result.Return(), GasUsed: result.UsedGas}, nil
}

func failed(result *core.ExecutionResult) *CallError {
	reverted := errors.Is(result.Err, vm.ErrExecutionReverted)
	return &CallError{Cause: result.Err, Reverted: reverted, Revert: result.Revert()}
}

// run executes a message once. A result is one that the EVM really came to: a
// failed read, which looks like something else there, is looked for first (P2).
func (r *Rules) run(ctx context.Context, s Scene, m *core.Message, hooks *tracing.Hooks) (*core.ExecutionResult, error) {
	if err := r.supports(s.Header.Number, s.Header.Time); err != nil {
		return nil, err
	}
	in := &reader{view: s.Base}
	db, err := state.NewWithReader(types.EmptyRootHash, noTries{}, in)
	if err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	own := r.ownPrecompiles(s.Header.Time)
	machine := vm.NewEVM(r.callContext(s, m, in), newWarm(db, own), r.config, vm.Config{NoBaseFee: true, Tracer: hooks})
	defer machine.Release()
	if own != nil {
		machine.SetPrecompiles(own)
	}
	machine.SetJumpDestCache(r.jumpDests)
	in.cancel = machine.Cancel
	stop := context.AfterFunc(ctx, machine.Cancel)
	defer stop()
	result, err := core.ApplyMessage(machine, m, nil)
	switch {
	case in.err != nil:
		return nil, stateReadError(in.err)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("execution aborted: %w", context.Cause(ctx))
	case err != nil:
		return nil, &CallError{Cause: err}
	}
	return result, nil
}

// callContext is the block as the code of a call sees it. A price of zero is
// below any base fee, which the EVM takes for granted not to happen.
func (r *Rules) callContext(s Scene, m *core.Message, in *reader) vm.BlockContext {
	h := s.Header
	context := vm.BlockContext{
		CanTransfer:      core.CanTransfer,
		Transfer:         core.Transfer,
		GetHash:          s.blockHash(in),
		Coinbase:         h.Coinbase,
		BlockNumber:      h.Number,
		Time:             h.Time,
		Difficulty:       h.Difficulty,
		BaseFee:          h.BaseFee,
		GasLimit:         h.GasLimit,
		CostPerStateByte: params.CostPerStateByte,
		BlobBaseFee:      s.BlobBaseFee,
	}
	if context.BlobBaseFee == nil && h.ExcessBlobGas != nil && r.config.IsCancun(h.Number, h.Time) {
		context.BlobBaseFee = eip4844.CalcBlobFee(r.config, h)
	}
	if m.GasPrice.IsZero() || context.BaseFee == nil {
		context.BaseFee = new(big.Int)
	}
	if context.BlobBaseFee == nil || m.BlobGasFeeCap != nil && m.BlobGasFeeCap.IsZero() {
		context.BlobBaseFee = new(big.Int)
	}
	if h.Difficulty.Sign() == 0 {
		context.Random = &h.MixDigest
	}
	if h.SlotNumber != nil {
		context.SlotNum = *h.SlotNumber
	}
	return context
}

func (s Scene) blockHash(in *reader) vm.GetHashFunc {
	return func(n uint64) chain.Hash {
		hash, err := s.Ancestors(chain.Number(n))
		if err != nil {
			in.fail(fmt.Errorf("hash of block %d: %w", n, err))
			return chain.Hash{}
		}
		return hash
	}
}
