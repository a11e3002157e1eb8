// SPDX-License-Identifier: Apache-2.0

package evm

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/core/types"
)

// RecoverSenders recovers the senders of txs on all cores and leaves them in the
// transactions, where execution finds them; recovery costs more than executing
// a transfer. A signature that gives no sender is left for execution to refuse.
func RecoverSenders(signer types.Signer, txs []*types.Transaction) {
	inParallel(len(txs), func(i int) {
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
	inParallel(len(txs), func(i int) {
		_, _ = types.Sender(signers[i], txs[i]) // execution asks again and reports
	})
}

// inParallel calls do for 0 to n-1 and returns when all calls have.
func inParallel(n int, do func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wg.Wait()
}
