// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/chain"
)

// rawBlock returns a sealed block for methods that answer with bytes: one that is
// only promised has none that anybody else could check.
func (s *session) rawBlock(args *arguments) (*block, error) {
	sel := args.block()
	if err := args.done(); err != nil {
		return nil, err
	}
	n, err := s.Locate(sel)
	if err != nil {
		return nil, err
	}
	return s.sealed(n)
}

func getRawHeader(s *session, dst []byte, args *arguments) ([]byte, error) {
	b, err := s.rawBlock(args)
	if err != nil {
		return nil, err
	}
	text, err := s.Header(b.number)
	if err != nil {
		return nil, fmt.Errorf("header of block %d: %w", b.number, err)
	}
	return appendData(dst, text), nil
}

func getRawBlock(s *session, dst []byte, args *arguments) ([]byte, error) {
	b, err := s.rawBlock(args)
	if err != nil {
		return nil, err
	}
	header, err := s.Header(b.number)
	if err != nil {
		return nil, fmt.Errorf("header of block %d: %w", b.number, err)
	}
	body, err := b.bodyText()
	if err != nil {
		return nil, err
	}
	parts, _, err := rlp.SplitList(body)
	if err != nil {
		return nil, fmt.Errorf("body of block %d: %w: %w", b.number, chain.ErrCorrupt, err)
	}
	w := rlp.NewEncoderBuffer(nil)
	whole := w.List()
	w.Write(header)
	w.Write(parts) // which follow the header in a block as they do each other here
	w.ListEnd(whole)
	return appendData(dst, w.ToBytes()), nil
}

func getRawReceipts(s *session, dst []byte, args *arguments) ([]byte, error) {
	b, err := s.rawBlock(args)
	if err != nil {
		return nil, err
	}
	receipts, err := b.receipts()
	if err != nil {
		return nil, err
	}
	raw := make([]hexutil.Bytes, len(receipts))
	for i, r := range receipts {
		if raw[i], err = r.MarshalBinary(); err != nil {
			return nil, fmt.Errorf("encode receipt %d of block %d: %w", i, b.number, err)
		}
	}
	return appendJSON(dst, raw)
}

func getRawTransaction(s *session, dst []byte, args *arguments) ([]byte, error) {
	hash, b, index, ok, err := s.named(args)
	if err != nil {
		return nil, err
	}
	if !ok {
		return append(dst, `"0x"`...), nil
	}
	txs, err := b.transactions()
	if err != nil {
		return nil, err
	}
	raw, err := txs[index].MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("encode transaction %s: %w", hash, err)
	}
	return appendData(dst, raw), nil
}
