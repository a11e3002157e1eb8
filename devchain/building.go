// SPDX-License-Identifier: Apache-2.0

package devchain

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/holiman/uint256"

	"glimpse/chain"
	"glimpse/evm"
)

// A building is the block being built on the store's head. It belongs to one
// goroutine.
type building struct {
	rules     *evm.Rules
	ancestors evm.Ancestors
	header    *types.Header // not modified: the EVM keeps it
	base      chain.View    // the parent's state

	block    *evm.Block
	ledger   *ledger
	entries  []*entry // what was executed, in order
	receipts types.Receipts
	space    space

	// What has been announced, under which name, and which accounts were
	// touched since.
	payload     [8]byte
	flashblocks int
	announced   int
	touched     map[chain.Address]struct{}
}

// begin opens a block and runs what comes before its first transaction.
func begin(rules *evm.Rules, header *types.Header, base chain.View, ancestors evm.Ancestors) (*building, error) {
	b := &building{
		rules: rules, ancestors: ancestors, header: header, base: base,
		space:   newSpace(rules.Config(), header),
		touched: make(map[chain.Address]struct{}),
	}
	return b, b.execute(nil)
}

// anew returns the same block as it was when it was begun.
func (b *building) anew() (*building, error) {
	return begin(b.rules, b.header, b.base, b.ancestors)
}

// execute begins the execution again, with these transactions, which must be
// known to be right in this order.
func (b *building) execute(entries []*entry) error {
	block, err := b.rules.Begin(b.header, b.base, b.ancestors)
	if err != nil {
		return fmt.Errorf("begin block %v: %w", b.header.Number, err)
	}
	txs := make([]*types.Transaction, len(entries))
	for i, e := range entries {
		txs[i] = e.tx
	}
	diff, receipts, err := block.Apply(txs)
	if err != nil {
		return fmt.Errorf("begin block %v: %w", b.header.Number, err)
	}
	b.block, b.ledger, b.receipts = block, newLedger(b.base), receipts
	b.note(diff)
	return nil
}

func (b *building) note(diff *chain.Diff) {
	b.ledger.add(diff)
	for i := range diff.Accounts {
		b.touched[diff.Accounts[i].Address] = struct{}{}
	}
}

// try executes a transaction at the end of the block, if its turn has come. An
// error other than the verdict's reason means that the block cannot go on.
func (b *building) try(e *entry) (verdict, error) {
	sender, err := b.ledger.account(e.from)
	if err != nil {
		return verdict{}, fmt.Errorf("read account %s: %w", e.from, err)
	}
	var code []byte
	if sender.CodeHash != (chain.Hash{}) {
		if code, err = b.ledger.code(sender.CodeHash); err != nil {
			return verdict{}, fmt.Errorf("read code of %s: %w", e.from, err)
		}
	}
	if v := judge(e, sender, code, b.header, b.blobFee(), b.space); v.outcome != runs {
		return v, nil
	}
	diff, receipts, err := b.block.Apply([]*types.Transaction{e.tx})
	invalid := new(evm.InvalidBlockError)
	switch {
	case errors.As(err, &invalid):
		return b.recover(invalid)
	case err != nil:
		return verdict{}, fmt.Errorf("execute %s: %w", e.tx.Hash(), err)
	}
	b.note(diff)
	b.entries = append(b.entries, e)
	b.receipts = append(b.receipts, receipts...)
	b.space.take(e, receipts[0].GasUsed)
	return verdict{outcome: runs}, nil
}

// recover brings the block back to before a transaction that go-ethereum refused
// though judge had not: an evm.Block is dead after that. Judge knows what is
// usual, so this is rare, and may cost a block's execution.
func (b *building) recover(cause *evm.InvalidBlockError) (verdict, error) {
	if err := b.execute(b.entries); err != nil {
		return verdict{}, err
	}
	if errors.Is(cause, core.ErrGasLimitReached) {
		return verdict{waits, cause}, nil
	}
	return verdict{never, cause}, nil
}

func (b *building) blobFee() *big.Int {
	if b.header.ExcessBlobGas == nil {
		return new(big.Int)
	}
	return eip4844.CalcBlobFee(b.rules.Config(), b.header)
}

func (b *building) transactions() []*types.Transaction {
	txs := make([]*types.Transaction, len(b.entries))
	for i, e := range b.entries {
		txs[i] = e.tx
	}
	return txs
}

// has reports whether a transaction is in the block.
func (b *building) has(hash chain.Hash) bool {
	for _, e := range b.entries {
		if e.tx.Hash() == hash {
			return true
		}
	}
	return false
}

// flashblock returns what came since the last one, also where nothing did.
func (b *building) flashblock() (*Flashblock, error) {
	f := &Flashblock{
		PayloadID:    b.payload,
		Index:        uint64(b.flashblocks),
		Header:       types.CopyHeader(b.header),
		Transactions: b.transactions()[b.announced:],
		Receipts:     b.receipts[b.announced:len(b.receipts):len(b.receipts)],
		Balances:     make(map[chain.Address]uint256.Int, len(b.touched)),
	}
	for addr := range b.touched {
		account, err := b.ledger.account(addr)
		if err != nil {
			return nil, fmt.Errorf("read account %s: %w", addr, err)
		}
		f.Balances[addr] = account.Balance
	}
	f.Header.GasUsed = b.space.gasUsed
	f.Header.Bloom = types.MergeBloom(b.receipts)
	f.Header.ReceiptHash = types.DeriveSha(b.receipts, trie.NewStackTrie(nil))
	if f.Header.BlobGasUsed != nil {
		f.Header.BlobGasUsed = new(b.space.blobGasUsed)
	}
	b.flashblocks++
	b.announced = len(b.entries)
	clear(b.touched)
	return f, nil
}
