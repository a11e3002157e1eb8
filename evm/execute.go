// SPDX-License-Identifier: Apache-2.0

package evm

import (
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
)

// Roots computes state roots. Apply puts a Diff on top of all that were applied
// before it and returns the root of the result.
type Roots interface {
	Apply(*chain.Diff) (chain.Hash, error)
}

// Checks say how much of an execution is compared with the block's header. The
// zero Checks compare nothing: the header and the body are still verified, and
// a block with a transaction that must not be there is still refused.
type Checks struct {
	// Receipts compares gas used, logs bloom, receipts root, requests hash and
	// block access list. A wrong slot that changes no gas, log or status goes
	// unnoticed. Before Byzantium receipts contain state roots, so that their
	// root is compared only where Roots is given too.
	Receipts bool

	// Roots, where not nil, compares the state root. It must stand at the
	// parent's state and is left at the block's, or anywhere between the two
	// after an error.
	Roots Roots
}

// A Result is an executed block.
type Result struct {
	Outcome

	// Diff is what the whole block changed.
	Diff *chain.Diff
}

// Execute verifies a block against its parent's header, executes it on the
// parent's state and compares the outcome with the header as far as checks
// say. The error wraps ErrStateRead or ErrUnsupported, or is an
// *InvalidBlockError.
func (r *Rules) Execute(block *types.Block, parent *types.Header, base chain.View, ancestors Ancestors, checks Checks) (*Result, error) {
	header, hash := block.Header(), block.Hash()
	if err := r.verify(block, header, parent); err != nil {
		return nil, err
	}
	b, err := r.begin(header, hash, base, ancestors)
	if err != nil {
		return nil, err
	}
	var eachRoot Roots
	if !r.config.IsByzantium(header.Number) {
		eachRoot = checks.Roots
	}
	for _, tx := range block.Transactions() {
		if err := b.transact(tx, eachRoot); err != nil {
			return nil, b.die(err)
		}
	}
	outcome, err := b.finish(block.Body())
	if err != nil {
		return nil, err
	}
	root, diff, err := b.settle(checks.Roots, eachRoot != nil)
	if err != nil {
		return nil, b.die(err)
	}
	b.evm.Release()
	if err := r.compare(b.ref, header, outcome, checks); err != nil {
		return nil, err
	}
	if checks.Roots != nil && root != header.Root {
		return nil, mismatch(b.ref, "state root", root, header.Root)
	}
	return &Result{Outcome: *outcome, Diff: diff}, nil
}

// settle returns the Diff of the whole block and, where roots is given, the
// state root after it. If roots has been given every transaction's part
// already, only the rest is left to apply.
func (b *Block) settle(roots Roots, inParts bool) (root chain.Hash, diff *chain.Diff, err error) {
	var rest *chain.Diff
	if inParts {
		if rest, err = b.takeDiff(); err != nil {
			return chain.Hash{}, nil, err
		}
	}
	if diff, err = b.Diff(); err != nil {
		return chain.Hash{}, nil, err
	}
	if roots == nil {
		return chain.Hash{}, diff, nil
	}
	if !inParts {
		rest = diff
	}
	if root, err = roots.Apply(rest); err != nil {
		return chain.Hash{}, nil, stateReadError(fmt.Errorf("state root: %w", err))
	}
	return root, diff, nil
}
