// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/flashblock"
)

// A Fulfilled is a block that was sealed as it was pre-confirmed: all of it is
// known from then, and it need neither be fetched nor be executed again.
type Fulfilled struct {
	// Raw has the transactions in their binary encoding, Hashes their hashes.
	// Transactions is nil where go-ethereum does not know their type.
	Raw          [][]byte
	Hashes       []chain.Hash
	Transactions []*types.Transaction

	Withdrawals types.Withdrawals
	Diff        *chain.Diff
	Receipts    []*types.Receipt
}

// Promised returns the block that is about to be sealed with this header as it was
// pre-confirmed; false where it was not, or not exactly so. The header commits to
// the transactions and withdrawals, so nothing else of the block is needed to
// compare. Seal has to be told afterwards. The error is one of the executor.
func (t *Tracker) Promised(h *types.Header) (Fulfilled, bool, error) {
	if len(t.stack) == 0 {
		return Fulfilled{}, false, nil
	}
	lowest, latest := t.stack[0], t.sealed.Head()
	promise := lowest.promise()
	if h.ParentHash != latest.Hash || !promise.sameResult(h) || !t.executor.Commits(h, promise.Withdrawals) {
		return Fulfilled{}, false, nil
	}
	raw := lowest.raw()
	if flashblock.TransactionsRoot(raw) != h.TxHash {
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
	return Fulfilled{
		Raw: raw, Hashes: lowest.now.Hashes, Transactions: lowest.now.Transactions,
		Withdrawals: promise.Withdrawals, Diff: diff, Receipts: lowest.now.Receipts,
	}, true, nil
}

// raw returns the transactions of the block as they came.
func (b *block) raw() [][]byte {
	raw := make([][]byte, 0, len(b.hashes))
	for index := range b.next() {
		raw = append(raw, b.build.messages[index].Delta.Transactions...)
	}
	return raw
}
