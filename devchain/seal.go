// SPDX-License-Identifier: Apache-2.0

package devchain

import (
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"

	"glimpse/chain"
)

// seal executes what follows the last transaction and returns the whole block,
// to be stored. Nothing can be done with b afterwards.
func (b *building) seal(roots Roots) (*Sealed, error) {
	body := &types.Body{Transactions: b.transactions()}
	if b.header.WithdrawalsHash != nil {
		body.Withdrawals = []*types.Withdrawal{}
	}
	_, outcome, err := b.block.Finish(body)
	if err != nil {
		return nil, fmt.Errorf("finish: %w", err)
	}
	diff, err := b.block.Diff()
	if err != nil {
		return nil, fmt.Errorf("collect changes: %w", err)
	}
	header := types.CopyHeader(b.header)
	if header.Root, err = roots.Apply(diff); err != nil {
		return nil, fmt.Errorf("state root: %w", err)
	}
	header.GasUsed = outcome.GasUsed
	if header.BlobGasUsed != nil {
		header.BlobGasUsed = new(b.space.blobGasUsed)
	}
	if outcome.Requests != nil {
		hash := types.CalcRequestsHash(outcome.Requests)
		header.RequestsHash = &hash
	}
	block := types.NewBlock(header, body, outcome.Receipts, trie.NewStackTrie(nil))
	return &Sealed{
		Block:       block,
		Diff:        diff,
		Receipts:    sealedReceipts(outcome.Receipts, block.Hash()),
		Flashblocks: b.flashblocks,
	}, nil
}

// sealedReceipts are receipts that know their block. Those without it have been
// announced and are shared, so they are copied.
func sealedReceipts(receipts types.Receipts, hash chain.Hash) types.Receipts {
	sealed := make(types.Receipts, len(receipts))
	for i, r := range receipts {
		receipt := *r
		receipt.BlockHash = hash
		receipt.Logs = make([]*types.Log, len(r.Logs))
		for k, l := range r.Logs {
			log := *l
			log.BlockHash = hash
			receipt.Logs[k] = &log
		}
		sealed[i] = &receipt
	}
	return sealed
}

// without returns the block as it is without some of its transactions, and those
// that are not in it: the ones named, and the ones that cannot be executed
// without them.
func (b *building) without(revoked map[chain.Hash]struct{}) (rest *building, gone, orphans []*entry, err error) {
	if rest, err = b.anew(); err != nil {
		return nil, nil, nil, err
	}
	for _, e := range b.entries {
		if _, ok := revoked[e.tx.Hash()]; ok {
			gone = append(gone, e)
			continue
		}
		v, err := rest.try(e)
		if err != nil {
			return nil, nil, nil, err
		}
		if v.outcome != runs {
			orphans = append(orphans, e)
		}
	}
	rest.flashblocks = b.flashblocks
	return rest, gone, orphans, nil
}
