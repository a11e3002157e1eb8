// SPDX-License-Identifier: Apache-2.0

package evm_test

import (
	"math/big"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/evm"
	"glimpse/internal/chaingen"
)

// A countingSigner counts how often a sender is worked out.
type countingSigner struct {
	types.Signer
	count atomic.Int64
}

func (c *countingSigner) Sender(tx *types.Transaction) (common.Address, error) {
	c.count.Add(1)
	return c.Signer.Sender(tx)
}

func (c *countingSigner) Equal(other types.Signer) bool { return other == types.Signer(c) }

func TestSendersAreFoundInTheTransactions(t *testing.T) {
	c := generated(chaingen.Newest, "newest", 9, 10)
	var txs []*types.Transaction
	for _, b := range c.blocks {
		txs = append(txs, b.Transactions()...)
	}
	signer := &countingSigner{Signer: types.LatestSignerForChainID(txs[len(txs)-1].ChainId())}
	evm.RecoverSenders(signer, txs)
	if got := int(signer.count.Load()); got != len(txs) {
		t.Errorf("got %d senders recovered, want %d", got, len(txs))
	}
	for _, tx := range txs {
		if _, err := types.Sender(signer, tx); err != nil {
			t.Error(err)
		}
	}
	if got := int(signer.count.Load()); got != len(txs) {
		t.Errorf("got %d senders recovered again, want none", got-len(txs))
	}
	bad := types.NewTx(&types.LegacyTx{V: big.NewInt(27), R: big.NewInt(1), S: new(big.Int)})
	evm.RecoverSenders(signer, []*types.Transaction{bad, bad}) // left for execution to refuse
}
