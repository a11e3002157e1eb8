// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/consensus/misc/eip1559"
	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
)

// How a tip is suggested: from the newest blocks, the lowest tips of each, and
// of all these the one that the given percentage do not exceed.
const (
	tipBlocks     = 20
	tipsPerBlock  = 3
	tipPercentile = 60
)

// A suggestedTip is kept for the head that it follows from: every wallet asks
// for it, and it takes reading many blocks.
type suggestedTip struct {
	head chain.Hash
	tip  *big.Int
}

func gasPrice(s *session, dst []byte, args *arguments) ([]byte, error) {
	if err := args.done(); err != nil {
		return nil, err
	}
	head, err := s.blockOf(chain.Latest)
	if err != nil {
		return nil, err
	}
	price, err := s.suggestTip(head)
	if err != nil {
		return nil, err
	}
	if head.header.BaseFee != nil {
		price = new(big.Int).Add(price, head.header.BaseFee)
	}
	return appendJSON(dst, (*hexutil.Big)(price))
}

func maxPriorityFeePerGas(s *session, dst []byte, args *arguments) ([]byte, error) {
	if err := args.done(); err != nil {
		return nil, err
	}
	head, err := s.blockOf(chain.Latest)
	if err != nil {
		return nil, err
	}
	tip, err := s.suggestTip(head)
	if err != nil {
		return nil, err
	}
	return appendJSON(dst, (*hexutil.Big)(tip))
}

// baseFee answers for the block after the newest, null before London.
func baseFee(s *session, dst []byte, args *arguments) ([]byte, error) {
	if err := args.done(); err != nil {
		return nil, err
	}
	head, err := s.blockOf(chain.Latest)
	if err != nil {
		return nil, err
	}
	return appendJSON(dst, (*hexutil.Big)(head.nextBaseFee()))
}

// blobBaseFee answers for the newest block, null before blobs.
func blobBaseFee(s *session, dst []byte, args *arguments) ([]byte, error) {
	if err := args.done(); err != nil {
		return nil, err
	}
	head, err := s.blockOf(chain.Latest)
	if err != nil {
		return nil, err
	}
	return appendJSON(dst, (*hexutil.Big)(head.blobBaseFee()))
}

// nextBaseFee is that of the block after b, nil before London.
func (b *block) nextBaseFee() *big.Int {
	config := b.session.api.config.Chain
	if !config.IsLondon(new(big.Int).Add(b.header.Number, big.NewInt(1))) {
		return nil
	}
	return eip1559.CalcBaseFee(config, b.header)
}

// suggestTip returns a tip with which a transaction is likely to be in one of
// the next blocks. It is the caller's to read only.
func (s *session) suggestTip(head *block) (*big.Int, error) {
	if known := s.api.tip.Load(); known != nil && known.head == head.hash {
		return known.tip, nil
	}
	var samples []*big.Int
	for b, k := head, 0; k < tipBlocks && b.number > 0; k++ {
		tips, err := b.lowestTips()
		if err != nil {
			return nil, err
		}
		samples = append(samples, tips...)
		if b, err = s.sealed(b.number - 1); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(samples, (*big.Int).Cmp)
	tip := percentile(samples)
	s.api.tip.Store(&suggestedTip{head.hash, tip})
	return tip, nil
}

// percentile picks the suggestion from sorted samples, of which a chain with
// nothing but genesis has none.
func percentile(sorted []*big.Int) *big.Int {
	if len(sorted) == 0 {
		return big.NewInt(defaultTip)
	}
	return sorted[(len(sorted)-1)*tipPercentile/100]
}

// defaultTip is the tip where no block tells: a thousandth of a gwei.
const defaultTip = 1_000_000

// lowestTips returns the lowest tips of a block that are more than a token and
// were not paid by its own producer; where there is none, the default.
func (b *block) lowestTips() ([]*big.Int, error) {
	txs, err := b.transactions()
	if err != nil {
		return nil, err
	}
	type paid struct {
		tx  *types.Transaction
		tip *big.Int
	}
	all := make([]paid, len(txs))
	for i, tx := range txs {
		tip, _ := tx.EffectiveGasTip(b.header.BaseFee) // it errs on a tip below zero, which no block has
		all[i] = paid{tx, tip}
	}
	slices.SortFunc(all, func(x, y paid) int { return x.tip.Cmp(y.tip) })
	var tips []*big.Int
	for _, p := range all {
		if p.tip.Cmp(big.NewInt(2)) < 0 {
			continue
		}
		from, err := types.Sender(signer(p.tx), p.tx)
		if err != nil {
			return nil, err
		}
		if from == b.header.Coinbase {
			continue
		}
		if tips = append(tips, p.tip); len(tips) == tipsPerBlock {
			break
		}
	}
	if len(tips) == 0 {
		tips = append(tips, big.NewInt(defaultTip))
	}
	return tips, nil
}
