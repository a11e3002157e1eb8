// SPDX-License-Identifier: Apache-2.0

package opstack

import (
	"encoding/binary"
	"math/big"

	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"

	"glimpse/chain"
)

// l1Block is the contract that the first deposit of each block tells the prices
// of the chain below.
var l1Block = chain.Address{0: 0x42, 19: 0x15}

// Where fees go. The sequencer's own is the block's coinbase.
var (
	baseFeeVault     = chain.Address{0: 0x42, 19: 0x19}
	l1FeeVault       = chain.Address{0: 0x42, 19: 0x1a}
	operatorFeeVault = chain.Address{0: 0x42, 19: 0x1b}
)

// The slots of l1Block that fees are computed from.
var (
	slotBaseFee     = chain.Slot{31: 1}
	slotScalars     = chain.Slot{31: 3} // base fee scalar in bytes 16 to 19, blob base fee scalar in 20 to 23
	slotOverhead    = chain.Slot{31: 5}
	slotScalar      = chain.Slot{31: 6}
	slotBlobBaseFee = chain.Slot{31: 7}
	slotOperator    = chain.Slot{31: 8} // scalar in bytes 20 to 23, constant in 24 to 31
)

// An era is how the fee for data is computed.
type era int

const (
	bedrock era = iota
	ecotone
	fjord
)

// fees are what a block charges beside gas.
type fees struct {
	era              era
	baseFee          *big.Int
	blobBaseFee      *big.Int
	overhead, scalar *big.Int // of Bedrock
	baseFeeScalar    uint64
	blobFeeScalar    uint64
	operatorScalar   uint64
	operatorConstant uint64
	operator         operatorRule
}

// An operatorRule is how the operator's fee is computed.
type operatorRule int

const (
	noOperatorFee operatorRule = iota
	operatorIsthmus
	operatorJovian
)

// feesAt reads the prices that hold for the block. That must happen at the first
// transaction that pays, after the deposits before it, and once: a later
// change of the slots is for the next block.
func (r *Rules) feesAt(state vm.StateDB, time uint64) *fees {
	slot := func(key chain.Slot) chain.Value { return state.GetState(l1Block, key) }
	forks := &r.config.Forks
	f := &fees{baseFee: slot(slotBaseFee).Big()}
	if active(forks.Ecotone, time) {
		scalars := slot(slotScalars)
		f.era = ecotone
		f.blobBaseFee = slot(slotBlobBaseFee).Big()
		f.baseFeeScalar = uint64(binary.BigEndian.Uint32(scalars[16:20]))
		f.blobFeeScalar = uint64(binary.BigEndian.Uint32(scalars[20:24]))
		if active(forks.Fjord, time) {
			f.era = fjord
		}
		// In the block that brings Ecotone nobody has set its prices yet.
		if f.blobBaseFee.Sign() == 0 && f.baseFeeScalar == 0 && f.blobFeeScalar == 0 {
			f.era = bedrock
		}
	}
	if f.era == bedrock {
		f.overhead, f.scalar = slot(slotOverhead).Big(), slot(slotScalar).Big()
	}
	if active(forks.Isthmus, time) {
		operator := slot(slotOperator)
		f.operatorScalar = uint64(binary.BigEndian.Uint32(operator[20:24]))
		f.operatorConstant = binary.BigEndian.Uint64(operator[24:32])
		f.operator = operatorIsthmus
		if active(forks.Jovian, time) {
			f.operator = operatorJovian
		}
	}
	return f
}

// The estimate of a transaction's size after compression is a line through its
// FastLZ size, in millionths of a byte.
const (
	sizeIntercept = -42_585_600
	sizeSlope     = 836_500
	sizeLeast     = 100_000_000
	sizeUnit      = 1_000_000
)

// estimatedSize returns what a transaction takes up on the chain below, in
// millionths of a byte.
func estimatedSize(raw []byte) uint64 {
	return uint64(max(sizeLeast, sizeIntercept+sizeSlope*int64(FastLZSize(raw))))
}

// data returns the fee for what a transaction of an estimated size takes up on
// the chain below.
func (f *fees) data(raw []byte, size uint64) *big.Int {
	if f.era == bedrock {
		fee := new(big.Int).SetUint64(calldataGas(raw))
		fee.Add(fee, f.overhead)
		fee.Mul(fee, f.baseFee).Mul(fee, f.scalar)
		return fee.Div(fee, big.NewInt(1_000_000))
	}
	perByte := new(big.Int).SetUint64(16 * f.baseFeeScalar)
	perByte.Mul(perByte, f.baseFee)
	blob := new(big.Int).SetUint64(f.blobFeeScalar)
	perByte.Add(perByte, blob.Mul(blob, f.blobBaseFee))
	if f.era == ecotone {
		fee := new(big.Int).SetUint64(calldataGas(raw))
		fee.Mul(fee, perByte)
		return fee.Div(fee, big.NewInt(16_000_000))
	}
	fee := new(big.Int).SetUint64(size)
	fee.Mul(fee, perByte)
	return fee.Div(fee, big.NewInt(1_000_000_000_000))
}

// calldataGas is what raw would have cost as calldata on the chain below.
func calldataGas(raw []byte) (gas uint64) {
	for _, b := range raw {
		if b == 0 {
			gas += params.TxDataZeroGas
		} else {
			gas += params.TxDataNonZeroGasEIP2028
		}
	}
	return gas
}

// forOperator returns the operator's fee for gas. It fits 103 bits.
func (f *fees) forOperator(gas uint64) *uint256.Int {
	fee := uint256.NewInt(gas)
	switch f.operator {
	case noOperatorFee:
		return fee.Clear()
	case operatorIsthmus:
		fee.Mul(fee, uint256.NewInt(f.operatorScalar))
		fee.Div(fee, uint256.NewInt(1_000_000))
	case operatorJovian:
		fee.Mul(fee, uint256.NewInt(f.operatorScalar))
		fee.Mul(fee, uint256.NewInt(100))
	}
	return fee.Add(fee, uint256.NewInt(f.operatorConstant))
}
