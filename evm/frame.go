// SPDX-License-Identifier: Apache-2.0

package evm

import (
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"

	"glimpse/chain"
)

// A Frame is what packages below this one build rules of their own on: a block
// whose EVM reads a View and whose writes are recorded, without Ethereum's idea
// of what a transaction is. It belongs to one goroutine. After any run of the
// EVM, and before its outcome is believed, ReadError must be looked at (P2).
type Frame struct{ block *Block }

// Open returns a Frame on the state after the parent, on which nothing has run.
// The header is looked at, kept and must not be modified, as in Begin; the hash
// is zero while it is not final.
func (r *Rules) Open(header *types.Header, hash chain.Hash, base chain.View, ancestors Ancestors) (*Frame, error) {
	b, err := r.open(header, hash, base, ancestors)
	if err != nil {
		return nil, err
	}
	return &Frame{b}, nil
}

// SystemCalls runs those that come before the first transaction.
func (f *Frame) SystemCalls() error { return f.block.beforeTransactions() }

// Ref names the block in errors.
func (f *Frame) Ref() chain.Ref { return f.block.ref }

// EVM returns the EVM, whose StateDB records what is written to it.
func (f *Frame) EVM() *vm.EVM { return f.block.evm }

// Fork returns the rules that the EVM runs by.
func (f *Frame) Fork() params.Rules { return f.block.fork }

// Gas returns the block's gas pool.
func (f *Frame) Gas() *core.GasPool { return f.block.gas }

// Logs returns the logs of a transaction of this block.
func (f *Frame) Logs(tx chain.Hash) []*types.Log {
	b := f.block
	return b.recorder.GetLogs(tx, b.header.Number.Uint64(), b.ref.Hash, b.header.Time)
}

// ReadError returns the first failure to read the state, which wraps
// ErrStateRead and makes everything void that the EVM has done since.
func (f *Frame) ReadError() error { return f.block.readError() }

// TakeDiff returns what was changed since the last call.
func (f *Frame) TakeDiff() (*chain.Diff, error) { return f.block.takeDiff() }

// Diff returns what the whole block has changed so far, and takes nothing from
// the next TakeDiff.
func (f *Frame) Diff() (*chain.Diff, error) { return f.block.Diff() }

// Release gives the EVM's memory back. Nothing may be run afterwards.
func (f *Frame) Release() { f.block.evm.Release() }
