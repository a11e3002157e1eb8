// SPDX-License-Identifier: Apache-2.0

package opstack

import (
	"math/big"

	"github.com/holiman/uint256"
)

// Prices are what the fees of a block are computed from, for tests.
type Prices struct {
	BaseFee, BlobBaseFee, Overhead, Scalar *big.Int
	BaseFeeScalar, BlobFeeScalar           uint64
	OperatorScalar, OperatorConstant       uint64
}

// DataFee returns the fee for data in the three eras.
func (p Prices) DataFee(raw []byte) (inBedrock, inEcotone, inFjord *big.Int) {
	f := fees{
		baseFee: p.BaseFee, blobBaseFee: p.BlobBaseFee, overhead: p.Overhead, scalar: p.Scalar,
		baseFeeScalar: p.BaseFeeScalar, blobFeeScalar: p.BlobFeeScalar,
	}
	var all [3]*big.Int
	for i, e := range []era{bedrock, ecotone, fjord} {
		f.era = e
		all[i] = f.data(raw, estimatedSize(raw))
	}
	return all[0], all[1], all[2]
}

// OperatorFee returns the operator's fee before Isthmus, since then and since
// Jovian.
func (p Prices) OperatorFee(gas uint64) (before, inIsthmus, inJovian *uint256.Int) {
	f := fees{operatorScalar: p.OperatorScalar, operatorConstant: p.OperatorConstant}
	var all [3]*uint256.Int
	for i, rule := range []operatorRule{noOperatorFee, operatorIsthmus, operatorJovian} {
		f.operator = rule
		all[i] = f.forOperator(gas)
	}
	return all[0], all[1], all[2]
}
