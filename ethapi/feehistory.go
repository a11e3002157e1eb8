// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/jsonrpc"
)

// What one eth_feeHistory may ask for. More blocks are cut, as other nodes do.
const (
	maxFeeBlocks      = 1024
	maxFeePercentiles = 100
)

type feeHistoryJSON struct {
	OldestBlock      hexutil.Uint64   `json:"oldestBlock"`
	Reward           [][]*hexutil.Big `json:"reward,omitempty"`
	BaseFee          []*hexutil.Big   `json:"baseFeePerGas,omitempty"`
	GasUsedRatio     []float64        `json:"gasUsedRatio"`
	BlobBaseFee      []*hexutil.Big   `json:"baseFeePerBlobGas,omitempty"`
	BlobGasUsedRatio []float64        `json:"blobGasUsedRatio,omitempty"`
}

func feeHistory(s *session, dst []byte, args *arguments) ([]byte, error) {
	count, sel, percentiles := args.quantity("block count"), args.height(), args.percentiles()
	if err := args.done(); err != nil {
		return nil, err
	}
	last, err := s.blockOf(sel)
	if err != nil {
		return nil, err
	}
	var out feeHistoryJSON
	count = min(count, maxFeeBlocks, uint64(last.number)+1)
	if count == 0 {
		return appendJSON(dst, out)
	}
	oldest := last.number + 1 - chain.Number(count)
	out.OldestBlock = hexutil.Uint64(oldest)
	ctx, done, err := s.costly()
	if err != nil {
		return nil, err
	}
	defer done()
	for n := oldest; n <= last.number; n++ {
		b := last
		if n < last.number {
			if b, err = s.sealed(n); err != nil {
				return nil, err
			}
		}
		if err := out.add(b, percentiles); err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	out.BaseFee = append(out.BaseFee, orZero(last.nextBaseFee()))
	out.BlobBaseFee = append(out.BlobBaseFee, orZero(last.nextBlobBaseFee()))
	return appendJSON(dst, out)
}

func (f *feeHistoryJSON) add(b *block, percentiles []float64) error {
	h := b.header
	f.BaseFee = append(f.BaseFee, orZero(h.BaseFee))
	f.BlobBaseFee = append(f.BlobBaseFee, orZero(b.blobBaseFee()))
	f.GasUsedRatio = append(f.GasUsedRatio, ratio(h.GasUsed, h.GasLimit))
	blobs := 0.0
	if h.BlobGasUsed != nil {
		blobs = ratio(*h.BlobGasUsed, eip4844.MaxBlobGasPerBlock(b.session.api.config.Chain, h.Time))
	}
	f.BlobGasUsedRatio = append(f.BlobGasUsedRatio, blobs)
	if len(percentiles) == 0 {
		return nil
	}
	rewards, err := b.rewards(percentiles)
	f.Reward = append(f.Reward, rewards)
	return err
}

func orZero(n *big.Int) *hexutil.Big {
	if n == nil {
		n = new(big.Int)
	}
	return (*hexutil.Big)(n)
}

func ratio(used, limit uint64) float64 {
	if limit == 0 {
		return 0
	}
	return float64(used) / float64(limit)
}

// nextBlobBaseFee is that of a block right after b, nil before blobs.
func (b *block) nextBlobBaseFee() *big.Int {
	if b.header.ExcessBlobGas == nil {
		return nil
	}
	config := b.session.api.config.Chain
	excess := eip4844.CalcExcessBlobGas(config, b.header, b.header.Time)
	return eip4844.CalcBlobFee(config, &types.Header{Number: b.header.Number, Time: b.header.Time, ExcessBlobGas: &excess})
}

// rewards returns the tips at these percentiles of the block's gas, ascending;
// zeros for an empty block.
func (b *block) rewards(percentiles []float64) ([]*hexutil.Big, error) {
	txs, err := b.transactions()
	if err != nil {
		return nil, err
	}
	rewards := make([]*hexutil.Big, len(percentiles))
	if len(txs) == 0 {
		for i := range rewards {
			rewards[i] = new(hexutil.Big)
		}
		return rewards, nil
	}
	receipts, err := b.receipts()
	if err != nil {
		return nil, err
	}
	type paid struct {
		tip *big.Int
		gas uint64
	}
	all := make([]paid, len(txs))
	for i, tx := range txs {
		tip, _ := tx.EffectiveGasTip(b.header.BaseFee) // it errs on a tip below zero, which no block has
		all[i] = paid{tip, receipts[i].GasUsed}
	}
	slices.SortStableFunc(all, func(x, y paid) int { return x.tip.Cmp(y.tip) })
	at, sum := 0, all[0].gas
	for i, p := range percentiles {
		for threshold := uint64(float64(b.header.GasUsed) * p / 100); sum < threshold && at < len(all)-1; {
			at++
			sum += all[at].gas
		}
		rewards[i] = (*hexutil.Big)(all[at].tip)
	}
	return rewards, nil
}

// percentiles takes an optional list of ascending numbers from 0 to 100.
func (a *arguments) percentiles() []float64 {
	v, given := a.next()
	if !given {
		return nil
	}
	all, why := list(maxFeePercentiles, parsePercentile)(v)
	for i := 1; i < len(all) && why == ""; i++ {
		if all[i] <= all[i-1] {
			why = "want them to ascend"
		}
	}
	if why != "" {
		a.refuse("reward percentiles", why)
	}
	return all
}

func parsePercentile(v jsonrpc.Value) (float64, string) {
	p, why := parseFloat(v)
	if why == "" && (p < 0 || p > 100) {
		why = "want 0 to 100"
	}
	return p, why
}
