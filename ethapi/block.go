// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/chain"
)

func getBlockByNumber(s *session, dst []byte, args *arguments) ([]byte, error) {
	sel, full := args.height(), args.boolean("full transactions")
	return s.appendBlock(dst, args, sel, full)
}

func getBlockByHash(s *session, dst []byte, args *arguments) ([]byte, error) {
	sel, full := chain.ByHash(args.hash()), args.boolean("full transactions")
	return s.appendBlock(dst, args, sel, full)
}

// appendBlock appends the block that sel means. One that does not exist is
// null, as the specification has it, and not an error.
func (s *session) appendBlock(dst []byte, args *arguments, sel chain.Selector, full bool) ([]byte, error) {
	if err := args.done(); err != nil {
		return nil, err
	}
	n, err := s.Locate(sel)
	if miss := new(chain.Miss); errors.As(err, &miss) {
		return append(dst, "null"...), nil
	} else if err != nil {
		return nil, err
	}
	block, err := s.block(n)
	if err != nil {
		return nil, fmt.Errorf("read block %d: %w", n, err)
	}
	out, err := newBlockJSON(block, full)
	if err != nil {
		return nil, fmt.Errorf("render block %d: %w", n, err)
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("render block %d: %w", n, err)
	}
	return append(dst, text...), nil
}

func (s *session) block(n chain.Number) (*types.Block, error) {
	header, err := s.Header(n)
	if err != nil {
		return nil, err
	}
	body, err := s.Body(n)
	if err != nil {
		return nil, err
	}
	var h types.Header
	var b types.Body
	if err := errors.Join(rlp.DecodeBytes(header, &h), rlp.DecodeBytes(body, &b)); err != nil {
		return nil, fmt.Errorf("%w: %w", chain.ErrCorrupt, err)
	}
	return types.NewBlockWithHeader(&h).WithBody(b), nil
}
