// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/evm"
	"glimpse/evm/opstack"
	"glimpse/follow"
	"glimpse/pending"
)

// opExecuting executes blocks of OP-Stack chains.
type opExecuting struct {
	rules     *opstack.Rules
	ancestors *ancestors
}

// Produce implements follow.Producer.
func (o opExecuting) Produce(_ context.Context, b *follow.Block, parent *types.Header, base chain.View) (*follow.Result, error) {
	raw := make([][]byte, len(b.Transactions))
	for i, tx := range b.Transactions {
		raw[i] = tx.Raw
	}
	txs, err := opstack.DecodeTransactions(raw)
	if err != nil {
		return nil, err
	}
	o.rules.RecoverSenders(b.Header, txs)
	result, err := o.rules.Execute(b.Header, txs, parent, base, o.ancestors.hash, evm.Checks{Receipts: true})
	if err != nil {
		return nil, err
	}
	return &follow.Result{Diff: result.Diff}, nil
}

// opExecutor lets pending execute flashblocks of OP-Stack chains.
type opExecutor struct{ rules *opstack.Rules }

var _ pending.Executor = opExecutor{}

// Complete implements pending.Executor.
func (x opExecutor) Complete(header, _ *types.Header) { x.rules.Complete(header) }

// Begin implements pending.Executor.
func (x opExecutor) Begin(header, _ *types.Header, base chain.View, ancestors func(chain.Number) (chain.Hash, error)) (pending.Execution, error) {
	block, err := x.rules.Begin(header, base, ancestors)
	if err != nil {
		return nil, err
	}
	return opExecution{x.rules, header, block}, nil
}

// Transient implements pending.Executor.
func (x opExecutor) Transient(err error) bool { return errors.Is(err, evm.ErrStateRead) }

type opExecution struct {
	rules  *opstack.Rules
	header *types.Header
	block  *opstack.Block
}

// Apply implements pending.Execution.
func (e opExecution) Apply(raw [][]byte) (*pending.Piece, error) {
	txs, err := opstack.DecodeTransactions(raw)
	if err != nil {
		return nil, err
	}
	e.rules.RecoverSenders(e.header, txs)
	diff, receipts, err := e.block.Apply(txs)
	if err != nil {
		return nil, err
	}
	done := &pending.Piece{Diff: diff, Hashes: make([]chain.Hash, len(txs)), Receipts: receipts.Common(), Encoded: receipts}
	for i, tx := range txs {
		done.Hashes[i] = tx.Hash()
	}
	return done, nil
}

// Finish implements pending.Execution: nothing follows the last transaction.
func (e opExecution) Finish(*types.Body) (*chain.Diff, error) {
	diff, _, err := e.block.Finish()
	return diff, err
}

// Diff implements pending.Execution.
func (e opExecution) Diff() (*chain.Diff, error) { return e.block.Diff() }
