// SPDX-License-Identifier: Apache-2.0

package opstack

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// DecodeBlock reads a block in the form that debug_getRawBlock gives. The
// transactions share memory with data, which must not be modified.
func DecodeBlock(data []byte) (*types.Header, []*Transaction, error) {
	header, raw, err := splitBlock(data)
	if err != nil {
		return nil, nil, fmt.Errorf("decode block: %w", err)
	}
	txs, err := DecodeTransactions(raw)
	if err != nil {
		return nil, nil, err
	}
	return header, txs, nil
}

func splitBlock(data []byte) (*types.Header, [][]byte, error) {
	content, rest, err := rlp.SplitList(data)
	if err != nil {
		return nil, nil, err
	}
	if len(rest) > 0 {
		return nil, nil, errors.New("bytes after the end")
	}
	_, _, afterHeader, err := rlp.Split(content)
	if err != nil {
		return nil, nil, err
	}
	header := new(types.Header)
	if err := rlp.DecodeBytes(content[:len(content)-len(afterHeader)], header); err != nil {
		return nil, nil, err
	}
	list, rest, err := rlp.SplitList(afterHeader)
	if err != nil {
		return nil, nil, err
	}
	raw, err := splitTransactions(list)
	if err != nil {
		return nil, nil, err
	}
	// Neither uncles nor withdrawals exist on these chains.
	for len(rest) > 0 {
		var content []byte
		if content, rest, err = rlp.SplitList(rest); err != nil {
			return nil, nil, err
		}
		if len(content) > 0 {
			return nil, nil, errors.New("uncles or withdrawals")
		}
	}
	return header, raw, nil
}

// splitTransactions finds legacy transactions as lists and others within
// strings.
func splitTransactions(list []byte) (raw [][]byte, err error) {
	for len(list) > 0 {
		kind, content, rest, err := rlp.Split(list)
		if err != nil {
			return nil, err
		}
		if kind == rlp.List {
			content = list[:len(list)-len(rest)]
		} else if typeOf(content) == types.LegacyTxType {
			return nil, errors.New("legacy transaction within a string")
		}
		raw = append(raw, content)
		list = rest
	}
	return raw, nil
}
