// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/evm"
	"glimpse/evm/opstack"
	"glimpse/flashblock"
	"glimpse/follow"
	"glimpse/pending"
)

// opExecuting executes blocks of OP-Stack chains.
type opExecuting struct {
	rules     *opstack.Rules
	ancestors *ancestors
	ahead     *ahead
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
	o.ahead.transactions(o.rules.Calls().Signer(b.Header), signed(txs))
	result, err := o.rules.Execute(b.Header, txs, parent, base, o.ancestors.hash, evm.Checks{Receipts: true})
	if err != nil {
		return nil, err
	}
	return &follow.Result{Diff: result.Diff}, nil
}

// opExecutor lets pending execute flashblocks of OP-Stack chains.
type opExecutor struct {
	rules *opstack.Rules
	ahead *ahead
}

var _ pending.Executor = opExecutor{}

// Complete implements pending.Executor.
func (x opExecutor) Complete(header, _ *types.Header) { x.rules.Complete(header) }

// Begin implements pending.Executor.
func (x opExecutor) Begin(header, _ *types.Header, base chain.View, ancestors func(chain.Number) (chain.Hash, error)) (pending.Execution, error) {
	block, err := x.rules.Begin(header, base, ancestors)
	if err != nil {
		return nil, err
	}
	return opExecution{x.rules, header, block, x.ahead}, nil
}

// Commits implements pending.Executor. There are no withdrawals on these chains,
// and what the header has in their place is about the state.
func (x opExecutor) Commits(_ *types.Header, w types.Withdrawals) bool { return len(w) == 0 }

// Transient implements pending.Executor.
func (x opExecutor) Transient(err error) bool { return errors.Is(err, evm.ErrStateRead) }

type opExecution struct {
	rules  *opstack.Rules
	header *types.Header
	block  *opstack.Block
	ahead  *ahead
}

// signed returns those transactions that have a signature.
func signed(txs []*opstack.Transaction) (all []*types.Transaction) {
	for _, tx := range txs {
		if t, ok := tx.Signed(); ok {
			all = append(all, t)
		}
	}
	return all
}

// Apply implements pending.Execution.
func (e opExecution) Apply(m *flashblock.Message, _ chain.View) (*pending.Piece, error) {
	txs, err := opstack.DecodeTransactions(m.Delta.Transactions)
	if err != nil {
		return nil, err
	}
	e.rules.RecoverSenders(e.header, txs)
	e.ahead.transactions(e.rules.Calls().Signer(e.header), signed(txs))
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
