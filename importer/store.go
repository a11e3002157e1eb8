// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/chain"
)

// A Store is where blocks go. It has at least the genesis block, and it is used
// from one goroutine.
type Store interface {
	// Head opens the last block that was committed. The Head is released
	// before the next is opened.
	Head() (Head, error)

	// Hash and Header return what is stored of the block of height n, which is
	// at most the head's. The header is as it was committed.
	Hash(n chain.Number) (chain.Hash, error)
	Header(n chain.Number) ([]byte, error)

	// Commit stores the block after the head, all of it or nothing (P5). What
	// Options.Roots has to store for the block goes with it.
	Commit(Block) error
}

// A Head is the last block of a Store with its state.
type Head struct {
	chain.Ref
	View    chain.View
	Release func() // the View is not used afterwards
}

// A Block is a block as it is stored.
type Block struct {
	chain.Ref
	Parent chain.Hash
	Header []byte // RLP
	Body   []byte // RLP of transactions, uncles and withdrawals

	// Transactions are their hashes, and Receipts is the RLP list of theirs, as
	// types.ReceiptForStorage: what header and body tell is left out.
	Transactions []chain.Hash
	Receipts     []byte

	Diff *chain.Diff
}

// NewBlock returns a block in the form that is stored, also for block 0.
//
// There must be a receipt for each transaction. What is stored of them is read
// with types.ReceiptForStorage and types.Receipts.DeriveFields.
func NewBlock(block *types.Block, receipts types.Receipts, diff *chain.Diff) (Block, error) {
	if have, want := len(receipts), len(block.Transactions()); have != want {
		return Block{}, fmt.Errorf("%d receipts for %d transactions", have, want)
	}
	header, err := rlp.EncodeToBytes(block.Header())
	if err != nil {
		return Block{}, fmt.Errorf("encode header: %w", err)
	}
	body, err := rlp.EncodeToBytes(block.Body())
	if err != nil {
		return Block{}, fmt.Errorf("encode body: %w", err)
	}
	stored := Block{Ref: refOf(block), Parent: block.ParentHash(), Header: header, Body: body, Diff: diff}
	slim := make([]*types.ReceiptForStorage, len(receipts))
	for i, tx := range block.Transactions() {
		slim[i] = (*types.ReceiptForStorage)(receipts[i])
		stored.Transactions = append(stored.Transactions, tx.Hash())
	}
	if stored.Receipts, err = rlp.EncodeToBytes(slim); err != nil {
		return Block{}, fmt.Errorf("encode receipts: %w", err)
	}
	return stored, nil
}

func refOf(block *types.Block) chain.Ref {
	return chain.Ref{Number: chain.Number(block.NumberU64()), Hash: block.Hash()}
}
