// SPDX-License-Identifier: Apache-2.0

package evm

import (
	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/internal/parallel"
)

// RecoverSenders recovers the senders of txs on all cores and leaves them in the
// transactions, where execution finds them; recovery costs more than executing
// a transfer. A signature that gives no sender is left for execution to refuse.
func RecoverSenders(signer types.Signer, txs []*types.Transaction) {
	parallel.Do(len(txs), func(i int) {
		_, _ = types.Sender(signer, txs[i]) // execution asks again and reports
	})
}

// RecoverSenders does the same for whole blocks, each by the rules of its time.
func (r *Rules) RecoverSenders(blocks []*types.Block) {
	var txs []*types.Transaction
	var signers []types.Signer
	for _, b := range blocks {
		signer := r.Signer(b.Header())
		for _, tx := range b.Transactions() {
			txs = append(txs, tx)
			signers = append(signers, signer)
		}
	}
	parallel.Do(len(txs), func(i int) {
		_, _ = types.Sender(signers[i], txs[i]) // execution asks again and reports
	})
}
