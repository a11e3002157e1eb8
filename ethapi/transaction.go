// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"fmt"

	"glimpse/chain"
)

func getTransactionByHash(s *session, dst []byte, args *arguments) ([]byte, error) {
	hash, b, index, ok, err := s.named(args)
	if err != nil {
		return nil, err
	}
	if ok {
		return appendTransaction(dst, b, index)
	}
	return s.appendWaiting(dst, hash)
}

func getTransactionReceipt(s *session, dst []byte, args *arguments) ([]byte, error) {
	_, b, index, ok, err := s.named(args)
	if err != nil {
		return nil, err
	}
	if !ok {
		return appendNull(dst), nil
	}
	receipt, err := newReceiptJSON(b, index)
	if err != nil {
		return nil, fmt.Errorf("receipt %d of block %d: %w", index, b.number, err)
	}
	return appendJSON(dst, receipt)
}

// named finds the transaction that the only argument is the hash of.
func (s *session) named(args *arguments) (hash chain.Hash, b *block, index int, ok bool, err error) {
	hash = args.hash("transaction hash")
	if err = args.done(); err == nil {
		b, index, ok, err = s.find(hash)
	}
	return hash, b, index, ok, err
}

// appendWaiting appends a transaction that is accepted and not promised yet, or
// null.
func (s *session) appendWaiting(dst []byte, hash chain.Hash) ([]byte, error) {
	if s.api.config.Sequencer == nil {
		return appendNull(dst), nil
	}
	tx, ok, err := s.api.config.Sequencer.Waiting(s.ctx, hash)
	if err != nil || !ok {
		return appendNull(dst), err
	}
	out, err := newTransactionJSON(tx, nil)
	if err != nil {
		return nil, fmt.Errorf("transaction %s: %w", hash, err)
	}
	return appendJSON(dst, out)
}

// find returns the block of a transaction, sealed or pre-confirmed, and its index
// there; ok is false where no block has it.
func (s *session) find(hash chain.Hash) (b *block, index int, ok bool, err error) {
	n, index, ok, err := s.Transaction(hash)
	if err != nil {
		return nil, 0, false, err
	}
	if !ok {
		p, index, ok := s.PendingTransaction(hash)
		if !ok && s.api.config.Partial && s.api.config.Forwarder != nil {
			return nil, 0, false, errElsewhere
		}
		if !ok {
			return nil, 0, false, nil
		}
		return s.preconfirmed(p), index, true, nil
	}
	if b, err = s.sealed(n); err != nil {
		return nil, 0, false, err
	}
	txs, err := b.transactions()
	if err != nil {
		return nil, 0, false, err
	}
	if index >= len(txs) || txs[index].Hash() != hash {
		return nil, 0, false, fmt.Errorf("%w: transaction %s is not number %d of block %d", chain.ErrCorrupt, hash, index, n)
	}
	return b, index, true, nil
}

func getTransactionByBlockNumberAndIndex(s *session, dst []byte, args *arguments) ([]byte, error) {
	return s.appendTransactionOf(dst, args, args.height())
}

func getTransactionByBlockHashAndIndex(s *session, dst []byte, args *arguments) ([]byte, error) {
	return s.appendTransactionOf(dst, args, chain.ByHash(args.hash("block hash")))
}

func (s *session) appendTransactionOf(dst []byte, args *arguments, sel chain.Selector) ([]byte, error) {
	index := args.quantity("transaction index")
	if err := args.done(); err != nil {
		return nil, err
	}
	b, ok, err := s.findBlock(sel)
	if !ok {
		return appendNull(dst), err
	}
	txs, err := b.transactions()
	if err != nil {
		return nil, err
	}
	if index >= uint64(len(txs)) {
		return appendNull(dst), nil
	}
	return appendTransaction(dst, b, int(index))
}

func appendTransaction(dst []byte, b *block, index int) ([]byte, error) {
	out, err := newIncludedJSON(b, index)
	if err != nil {
		return nil, fmt.Errorf("transaction %d of block %d: %w", index, b.number, err)
	}
	return appendJSON(dst, out)
}
