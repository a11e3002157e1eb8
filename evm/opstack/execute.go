// SPDX-License-Identifier: Apache-2.0

package opstack

import (
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"

	"glimpse/chain"
	"glimpse/evm"
)

// A Result is an executed block.
type Result struct {
	Outcome

	// Diff is what the whole block changed.
	Diff *chain.Diff
}

// Execute verifies a block against its parent's header, executes it on the
// parent's state and compares the outcome with the header as far as checks say.
// Checks mean what they mean to evm.Rules.Execute. The error wraps
// evm.ErrStateRead or evm.ErrUnsupported, or is an *evm.InvalidBlockError.
func (r *Rules) Execute(header *types.Header, txs []*Transaction, parent *types.Header, base chain.View, ancestors evm.Ancestors, checks evm.Checks) (*Result, error) {
	if err := r.supports(header); err != nil {
		return nil, err
	}
	ref := chain.Ref{Number: chain.Number(header.Number.Uint64()), Hash: header.Hash()}
	if err := r.verifyHeader(ref, header, parent); err != nil {
		return nil, err
	}
	if got := types.DeriveSha(Transactions(txs), trie.NewStackTrie(nil)); got != header.TxHash {
		return nil, mismatch(ref, "transactions root", got, header.TxHash)
	}
	b, err := r.begin(header, ref.Hash, base, ancestors)
	if err != nil {
		return nil, err
	}
	if n := len(txs); n > 0 && txs[n-1].refunds != nil {
		if err := b.Announce(txs[n-1]); err != nil {
			return nil, err
		}
	}
	if err := b.apply(txs); err != nil {
		return nil, err
	}
	diff, err := b.Diff()
	if err != nil {
		return nil, err
	}
	outcome := b.Outcome()
	b.frame.Release()
	if err := r.compare(ref, header, outcome, checks.Receipts); err != nil {
		return nil, err
	}
	if checks.Roots != nil {
		root, err := checks.Roots.Apply(diff)
		if err != nil {
			return nil, fmt.Errorf("%w: state root: %w", evm.ErrStateRead, err)
		}
		if root != header.Root {
			return nil, mismatch(ref, "state root", root, header.Root)
		}
	}
	return &Result{Outcome: *outcome, Diff: diff}, nil
}

// compare checks the outcome of an execution against the header.
func (r *Rules) compare(ref chain.Ref, header *types.Header, o *Outcome, receipts bool) error {
	if len(o.Receipts) == 0 {
		return mismatch(ref, "transactions", 0, "at least the block's attributes")
	}
	if used := header.BlobGasUsed; used != nil && *used != o.Footprint {
		return mismatch(ref, "blob gas used", *used, o.Footprint)
	}
	if o.Footprint > header.GasLimit {
		return mismatch(ref, "footprint", o.Footprint, fmt.Sprintf("at most %d", header.GasLimit))
	}
	if !receipts {
		return nil
	}
	if o.GasUsed != header.GasUsed {
		return mismatch(ref, "gas used", o.GasUsed, header.GasUsed)
	}
	if o.Bloom != header.Bloom {
		return mismatch(ref, "logs bloom", fmt.Sprintf("%#x", o.Bloom[:]), fmt.Sprintf("%#x", header.Bloom[:]))
	}
	if got := types.DeriveSha(o.Receipts, trie.NewStackTrie(nil)); got != header.ReceiptHash {
		return mismatch(ref, "receipts root", got, header.ReceiptHash)
	}
	return nil
}
