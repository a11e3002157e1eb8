// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"encoding/json"
	"fmt"

	"glimpse/chain"
)

func getBlockByNumber(s *session, dst []byte, args *arguments) ([]byte, error) {
	sel, full := args.height(), args.boolean("full transactions")
	return s.appendBlock(dst, args, sel, full)
}

func getBlockByHash(s *session, dst []byte, args *arguments) ([]byte, error) {
	sel, full := chain.ByHash(args.hash("block hash")), args.boolean("full transactions")
	return s.appendBlock(dst, args, sel, full)
}

// appendBlock appends the block that sel means, or null.
func (s *session) appendBlock(dst []byte, args *arguments, sel chain.Selector, full bool) ([]byte, error) {
	if err := args.done(); err != nil {
		return nil, err
	}
	b, ok, err := s.findBlock(sel)
	if !ok {
		return appendNull(dst), err
	}
	out, err := newBlockJSON(b, full)
	if err != nil {
		return nil, fmt.Errorf("render block %d: %w", b.number, err)
	}
	return appendJSON(dst, out)
}

func getBlockReceipts(s *session, dst []byte, args *arguments) ([]byte, error) {
	sel := args.block()
	if err := args.done(); err != nil {
		return nil, err
	}
	b, ok, err := s.findBlock(sel)
	if !ok {
		return appendNull(dst), err
	}
	receipts, err := b.receipts()
	if err != nil {
		return nil, err
	}
	out := make([]*receiptJSON, len(receipts))
	for i := range receipts {
		if out[i], err = newReceiptJSON(b, i); err != nil {
			return nil, fmt.Errorf("render receipts of block %d: %w", b.number, err)
		}
	}
	return appendJSON(dst, out)
}

func getBlockTransactionCountByNumber(s *session, dst []byte, args *arguments) ([]byte, error) {
	return s.appendCount(dst, args, args.height())
}

func getBlockTransactionCountByHash(s *session, dst []byte, args *arguments) ([]byte, error) {
	return s.appendCount(dst, args, chain.ByHash(args.hash("block hash")))
}

func (s *session) appendCount(dst []byte, args *arguments, sel chain.Selector) ([]byte, error) {
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
	return appendQuantity(dst, uint64(len(txs))), nil
}

func appendNull(dst []byte) []byte { return append(dst, "null"...) }

func appendJSON(dst []byte, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("render result: %w", err)
	}
	return append(dst, text...), nil
}
