// SPDX-License-Identifier: Apache-2.0

package opstack

import (
	"fmt"

	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/evm"
)

// A Block is one block being executed. It belongs to one goroutine. After any
// error it is dead: every further call returns the same error. A Block may be
// dropped at any time.
type Block struct {
	rules  *Rules
	header *types.Header
	frame  *evm.Frame
	signer types.Signer

	fees      *fees // nil until the first transaction that pays
	footprint footprint
	receipts  Receipts

	refunds   *refunds // of the transactions that follow
	announced *Transaction
	closed    bool // by a post-execution transaction

	err error
}

// Begin opens a block on the state after its parent, as evm.Rules.Begin does:
// the header's execution inputs must be set, and it is kept and must not be
// modified. Complete sets those that feeds leave out.
func (r *Rules) Begin(header *types.Header, base chain.View, ancestors evm.Ancestors) (*Block, error) {
	return r.begin(header, chain.Hash{}, base, ancestors)
}

func (r *Rules) begin(header *types.Header, hash chain.Hash, base chain.View, ancestors evm.Ancestors) (*Block, error) {
	if err := r.supports(header); err != nil {
		return nil, err
	}
	if excess := header.ExcessBlobGas; excess != nil && *excess != 0 {
		ref := chain.Ref{Number: chain.Number(header.Number.Uint64()), Hash: hash}
		return nil, mismatch(ref, "excess blob gas", *excess, 0)
	}
	frame, err := r.ethereum.Open(header, hash, base, ancestors)
	if err != nil {
		return nil, err
	}
	b := &Block{rules: r, header: header, frame: frame, signer: r.ethereum.Signer(header)}
	if canyon := r.config.Forks.Canyon; canyon != nil && *canyon == header.Time {
		frame.EVM().StateDB.SetCode(create2DeployerAddress, []byte(create2Deployer), tracing.CodeChangeUnspecified)
	}
	if err := frame.SystemCalls(); err != nil {
		return nil, b.die(err)
	}
	return b, nil
}

// Apply executes the next transactions of the block and returns what they
// changed and their receipts, whose block hash is not set. A transaction that
// fails inside the EVM has a receipt that says so, and so has a deposit that
// could not even be begun; one that must not be in a block at all gives an
// *evm.InvalidBlockError.
func (b *Block) Apply(txs []*Transaction) (*chain.Diff, Receipts, error) {
	first := len(b.receipts)
	if err := b.apply(txs); err != nil {
		return nil, nil, err
	}
	diff, err := b.frame.TakeDiff()
	if err != nil {
		return nil, nil, b.die(err)
	}
	return diff, b.receipts[first:], nil
}

func (b *Block) apply(txs []*Transaction) error {
	if b.err != nil {
		return b.err
	}
	for _, tx := range txs {
		if err := b.transact(tx); err != nil {
			return b.die(err)
		}
	}
	return nil
}

// An Outcome is what a block's execution yields beside its changes.
type Outcome struct {
	Receipts Receipts
	GasUsed  uint64
	Bloom    types.Bloom

	// Footprint is what the header has as blob gas used: since Jovian what the
	// block takes up on the chain below, before that zero.
	Footprint uint64
}

// Outcome returns what the transactions so far have yielded. Nothing follows the
// last transaction on these chains, so it is also that of the whole block.
func (b *Block) Outcome() *Outcome {
	return &Outcome{
		Receipts:  b.receipts,
		GasUsed:   b.frame.Gas().Used(),
		Bloom:     types.MergeBloom(b.receipts.Common()),
		Footprint: b.footprint.used,
	}
}

// Finish returns what follows the last transaction, which is always nothing, and
// what the block yielded.
func (b *Block) Finish() (*chain.Diff, *Outcome, error) {
	if b.err != nil {
		return nil, nil, b.err
	}
	if err := b.checkClosed(); err != nil {
		return nil, nil, b.die(err)
	}
	diff, err := b.frame.TakeDiff()
	if err != nil {
		return nil, nil, b.die(err)
	}
	return diff, b.Outcome(), nil
}

// checkClosed looks for refunds of transactions that are none of this block's.
func (b *Block) checkClosed() error {
	if b.refunds == nil {
		return nil
	}
	last := b.refunds.Entries[len(b.refunds.Entries)-1]
	if last.Index >= uint64(len(b.receipts)) {
		return b.invalid(fmt.Sprintf("refund for transaction %d of %d", last.Index, len(b.receipts)), nil)
	}
	return nil
}

// Diff returns what the block has changed so far, in all its parts together, and
// takes nothing from the Diff of the next part.
func (b *Block) Diff() (*chain.Diff, error) {
	if b.err != nil {
		return nil, b.err
	}
	diff, err := b.frame.Diff()
	if err != nil {
		return nil, b.die(err)
	}
	return diff, nil
}

func (b *Block) die(err error) error {
	b.err = err
	b.frame.Release()
	return err
}

func (b *Block) invalid(what string, cause error) error {
	return &evm.InvalidBlockError{Ref: b.frame.Ref(), What: what, Cause: cause}
}

func (b *Block) mismatch(what string, got, want any) error {
	return mismatch(b.frame.Ref(), what, got, want)
}

func mismatch(ref chain.Ref, what string, got, want any) error {
	return &evm.InvalidBlockError{Ref: ref, What: what, Got: fmt.Sprint(got), Want: fmt.Sprint(want)}
}
