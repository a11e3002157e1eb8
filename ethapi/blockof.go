// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/chain"
)

// A block is what a selector means. Its header is there; its body and receipts
// are read when they are asked for, and once. It is good as long as its session.
type block struct {
	session *session
	number  chain.Number
	header  *types.Header
	hash    chain.Hash

	headerSize     uint64 // of its encoding; 0 before the block is sealed
	headerOnly     bool   // nothing else is known here
	loadedBody     *types.Body
	loadedReceipts types.Receipts // nil until they are read
}

// blockOf returns the block that sel means. It is the one way from a selector
// to a block, so that all methods agree on which it is. A block that is not here
// is a *chain.Miss; safe and finalized are chain.ErrNoTag while there is none.
func (s *session) blockOf(sel chain.Selector) (*block, error) {
	if p, ok := s.Pending(); ok && sel.IsPending() {
		return s.preconfirmed(p), nil
	}
	n, err := s.Locate(sel)
	if err != nil {
		return nil, err
	}
	return s.sealed(n)
}

// preconfirmed returns a block that is promised and not sealed. Its hash is zero.
func (s *session) preconfirmed(p *chain.Preconfirmed) *block {
	if p.Transactions == nil && len(p.Hashes) > 0 {
		return &block{session: s, number: chain.Number(p.Header.Number.Uint64()), header: p.Header, headerOnly: true}
	}
	body := &types.Body{Transactions: p.Transactions}
	if s.api.config.Chain.IsShanghai(p.Header.Number, p.Header.Time) {
		body.Withdrawals = types.Withdrawals{}
	}
	receipts := append(types.Receipts{}, p.Receipts...) // never nil: there are no others to read
	return &block{
		session: s, number: chain.Number(p.Header.Number.Uint64()), header: p.Header,
		loadedBody: body, loadedReceipts: receipts,
	}
}

// sealed returns a block of the canonical chain, which Locate or Transaction
// said is there.
func (s *session) sealed(n chain.Number) (*block, error) {
	text, err := s.Header(n)
	if err != nil {
		return nil, fmt.Errorf("header of block %d: %w", n, err)
	}
	b := &block{session: s, number: n, header: new(types.Header), hash: crypto.Keccak256Hash(text), headerSize: uint64(len(text))}
	if err := rlp.DecodeBytes(text, b.header); err != nil {
		return nil, fmt.Errorf("header of block %d: %w: %w", n, chain.ErrCorrupt, err)
	}
	return b, nil
}

// findBlock is blockOf for methods that answer null where there is no such
// block, as the specification has it: ok is then false.
func (s *session) findBlock(sel chain.Selector) (b *block, ok bool, err error) {
	b, err = s.blockOf(sel)
	if miss := new(chain.Miss); errors.As(err, &miss) && !(s.api.config.Partial && isElsewhere(err)) {
		return nil, false, nil
	}
	return b, err == nil, err
}

func (b *block) body() (*types.Body, error) {
	if b.loadedBody != nil {
		return b.loadedBody, nil
	}
	text, err := b.bodyText()
	if err != nil {
		return nil, err
	}
	body := new(types.Body)
	if err := rlp.DecodeBytes(text, body); err != nil {
		return nil, fmt.Errorf("body of block %d: %w: %w", b.number, chain.ErrCorrupt, err)
	}
	b.loadedBody = body
	return body, nil
}

// bodyText returns the body of a sealed block as it is stored.
func (b *block) bodyText() ([]byte, error) {
	if b.headerOnly {
		return nil, errElsewhere
	}
	text, err := b.session.Body(b.number)
	if err != nil {
		return nil, fmt.Errorf("body of block %d: %w", b.number, err)
	}
	if len(text) == 0 {
		return nil, errElsewhere
	}
	return text, nil
}

func (b *block) transactions() ([]*types.Transaction, error) {
	body, err := b.body()
	if err != nil {
		return nil, err
	}
	return body.Transactions, nil
}

// receipts returns one for each transaction, with every field that follows from
// the block filled in.
func (b *block) receipts() (types.Receipts, error) {
	if b.loadedReceipts != nil {
		return b.loadedReceipts, nil
	}
	txs, err := b.transactions()
	if err != nil {
		return nil, err
	}
	text, err := b.session.Receipts(b.number)
	if err != nil {
		return nil, fmt.Errorf("receipts of block %d: %w", b.number, err)
	}
	var stored []*types.ReceiptForStorage
	if err := rlp.DecodeBytes(text, &stored); err != nil {
		return nil, fmt.Errorf("receipts of block %d: %w: %w", b.number, chain.ErrCorrupt, err)
	}
	receipts := make(types.Receipts, len(stored))
	for i, r := range stored {
		receipts[i] = (*types.Receipt)(r)
	}
	err = receipts.DeriveFields(b.session.api.config.Chain, b.hash, uint64(b.number), b.header.Time,
		b.header.BaseFee, b.blobBaseFee(), txs)
	if err != nil {
		return nil, fmt.Errorf("receipts of block %d: %w: %w", b.number, chain.ErrCorrupt, err)
	}
	b.loadedReceipts = receipts
	return receipts, nil
}

// blobBaseFee is nil before blobs.
func (b *block) blobBaseFee() *big.Int {
	if b.header.ExcessBlobGas == nil {
		return nil
	}
	return eip4844.CalcBlobFee(b.session.api.config.Chain, b.header)
}

// ancestor returns the hash of the block of height n for the BLOCKHASH
// instruction: zero for b itself and what is after it.
func (b *block) ancestor(n chain.Number) (chain.Hash, error) {
	switch {
	case n >= b.number:
		return chain.Hash{}, nil
	case n+1 == b.number:
		return b.header.ParentHash, nil
	}
	text, err := b.session.Header(n)
	if err != nil {
		return chain.Hash{}, err
	}
	return crypto.Keccak256Hash(text), nil
}
