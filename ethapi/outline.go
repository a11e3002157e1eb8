// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/chain"
)

// An outline is what is told of a block without looking into its transactions.
type outline struct {
	transactions []chain.Hash
	uncles       []chain.Hash
	withdrawals  types.Withdrawals // nil where the block has no list of them
	size         uint64            // of its encoding
}

// outline reads the block's body without decoding its transactions: most who ask
// for a block want hashes, and decoding takes ten times as long.
func (b *block) outline() (*outline, error) {
	if b.loadedBody != nil {
		return outlineOf(types.NewBlockWithHeader(b.header).WithBody(*b.loadedBody)), nil
	}
	text, err := b.bodyText()
	if err != nil {
		return nil, err
	}
	o, err := readOutline(text)
	if err != nil {
		return nil, fmt.Errorf("body of block %d: %w: %w", b.number, chain.ErrCorrupt, err)
	}
	content, _, err := rlp.SplitList(text)
	if err != nil {
		return nil, fmt.Errorf("body of block %d: %w: %w", b.number, chain.ErrCorrupt, err)
	}
	o.size = rlp.ListSize(b.headerSize + uint64(len(content))) // the parts of a body follow the header in a block
	return o, nil
}

// readOutline reads all but the size.
func readOutline(body []byte) (*outline, error) {
	var parts struct {
		Transactions []rlp.RawValue
		Uncles       []*types.Header
		Withdrawals  types.Withdrawals `rlp:"optional"`
	}
	if err := rlp.DecodeBytes(body, &parts); err != nil {
		return nil, err
	}
	o := &outline{transactions: make([]chain.Hash, len(parts.Transactions)), uncles: hashesOf(parts.Uncles), withdrawals: parts.Withdrawals}
	for i, item := range parts.Transactions {
		kind, content, _, err := rlp.Split(item)
		if err != nil {
			return nil, err
		}
		if kind == rlp.List { // one from before there were types
			content = item
		}
		o.transactions[i] = crypto.Keccak256Hash(content)
	}
	return o, nil
}

func outlineOf(block *types.Block) *outline {
	o := &outline{uncles: hashesOf(block.Uncles()), withdrawals: block.Withdrawals(), size: block.Size()}
	for _, tx := range block.Transactions() {
		o.transactions = append(o.transactions, tx.Hash())
	}
	return o
}

func hashesOf(headers []*types.Header) []chain.Hash {
	hashes := make([]chain.Hash, len(headers))
	for i, h := range headers {
		hashes[i] = h.Hash()
	}
	return hashes
}
