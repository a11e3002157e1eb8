// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
)

// A Fulfilled is a block that was sealed as it was pre-confirmed: what it changed
// and its receipts are known from then, and it need not be executed again.
type Fulfilled struct {
	Diff     *chain.Diff
	Receipts []*types.Receipt
}

// Promised returns what a block that is about to be sealed did when it was
// pre-confirmed; false where it was not, or not exactly so. Seal has to be told
// afterwards. The error is one of the executor.
func (t *Tracker) Promised(s *SealedBlock) (Fulfilled, bool, error) {
	if len(t.stack) == 0 {
		return Fulfilled{}, false, nil
	}
	lowest := t.stack[0]
	promise := []Promise{lowest.promise()}
	if Reconcile(t.sealed.Head(), promise, s).Outcome != Promote || s.Ref().Number != t.sealed.Head().Number+1 {
		return Fulfilled{}, false, nil
	}
	// One that another stands on is finished already.
	if err := t.finish(lowest); err != nil {
		return Fulfilled{}, false, err
	}
	diff, err := lowest.execution.Diff()
	if err != nil {
		return Fulfilled{}, false, fmt.Errorf("changes of block %d: %w", lowest.build.number, err)
	}
	return Fulfilled{Diff: diff, Receipts: lowest.now.Receipts}, true, nil
}
