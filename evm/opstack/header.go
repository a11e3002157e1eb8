// SPDX-License-Identifier: Apache-2.0

package opstack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"

	"glimpse/chain"
)

// Complete sets the fields of a header that feeds do not carry and that are the
// same in all blocks of a fork, and takes out those that the fork does not have.
// The withdrawals root, which since Isthmus is not the same in all, is left.
func (r *Rules) Complete(header *types.Header) {
	forks, time := &r.config.Forks, header.Time
	header.Difficulty, header.UncleHash = new(big.Int), types.EmptyUncleHash
	if active(forks.Canyon, time) && !active(forks.Isthmus, time) {
		header.WithdrawalsHash = &types.EmptyWithdrawalsHash
	}
	if active(forks.Ecotone, time) {
		header.ExcessBlobGas = new(uint64)
		if header.BlobGasUsed == nil {
			header.BlobGasUsed = new(uint64)
		}
	} else {
		header.ExcessBlobGas, header.BlobGasUsed, header.ParentBeaconRoot = nil, nil, nil
	}
	if active(forks.Isthmus, time) {
		header.RequestsHash = &types.EmptyRequestsHash
	} else {
		header.RequestsHash = nil
	}
}

// verifyHeader checks what can be said of a header and its parent's.
func (r *Rules) verifyHeader(ref chain.Ref, header, parent *types.Header) error {
	if got, want := header.ParentHash, parent.Hash(); got != want {
		return mismatch(ref, "parent", got, want)
	}
	next := new(big.Int).Add(parent.Number, big.NewInt(1))
	switch {
	case header.Number.Cmp(next) != 0:
		return mismatch(ref, "number", header.Number, next)
	case header.Time <= parent.Time:
		return mismatch(ref, "time", header.Time, fmt.Sprintf("more than %d", parent.Time))
	case header.Difficulty == nil || header.Difficulty.Sign() != 0:
		return mismatch(ref, "difficulty", header.Difficulty, 0)
	case header.Nonce != types.BlockNonce{}:
		return mismatch(ref, "nonce", header.Nonce.Uint64(), 0)
	case header.UncleHash != types.EmptyUncleHash:
		return mismatch(ref, "uncles hash", header.UncleHash, types.EmptyUncleHash)
	case header.GasLimit > params.MaxGasLimit:
		return mismatch(ref, "gas limit", header.GasLimit, fmt.Sprintf("at most %d", uint64(params.MaxGasLimit)))
	case header.GasUsed > header.GasLimit:
		return mismatch(ref, "gas used", header.GasUsed, fmt.Sprintf("at most %d", header.GasLimit))
	}
	if err := r.verifyForkFields(ref, header); err != nil {
		return err
	}
	if _, err := r.feeParametersOf(header); err != nil {
		return mismatch(ref, "extra data", fmt.Sprintf("%#x", header.Extra), err)
	}
	baseFee, err := r.baseFee(parent, header.Time)
	if err != nil {
		return mismatch(ref, "parent's extra data", fmt.Sprintf("%#x", parent.Extra), err)
	}
	if header.BaseFee == nil || header.BaseFee.Cmp(baseFee) != 0 {
		return mismatch(ref, "base fee", header.BaseFee, baseFee)
	}
	return nil
}

// verifyForkFields checks the fields that forks brought. Those that execution
// needs are also looked at when the block is opened.
func (r *Rules) verifyForkFields(ref chain.Ref, header *types.Header) error {
	forks, time := &r.config.Forks, header.Time
	canyon, ecotone, isthmus := active(forks.Canyon, time), active(forks.Ecotone, time), active(forks.Isthmus, time)
	switch {
	case header.BlockAccessListHash != nil || header.SlotNumber != nil:
		return mismatch(ref, "fields of a later fork present", true, false)
	case (header.WithdrawalsHash != nil) != canyon:
		return mismatch(ref, "withdrawals root present", header.WithdrawalsHash != nil, canyon)
	case canyon && !isthmus && *header.WithdrawalsHash != types.EmptyWithdrawalsHash:
		return mismatch(ref, "withdrawals root", header.WithdrawalsHash, types.EmptyWithdrawalsHash)
	case (header.BlobGasUsed != nil) != ecotone:
		return mismatch(ref, "blob gas used present", header.BlobGasUsed != nil, ecotone)
	case (header.RequestsHash != nil) != isthmus:
		return mismatch(ref, "requests hash present", header.RequestsHash != nil, isthmus)
	case isthmus && *header.RequestsHash != types.EmptyRequestsHash:
		return mismatch(ref, "requests hash", header.RequestsHash, types.EmptyRequestsHash)
	}
	return nil
}

// feeParameters are what rules the base fee of the next block.
type feeParameters struct {
	denominator, elasticity uint64
	least                   uint64
}

var (
	errExtraEmpty    = errors.New("none before Holocene")
	errExtraHolocene = errors.New("version 0 and two numbers")
	errExtraJovian   = errors.New("version 1 and three numbers")
	errExtraZero     = errors.New("no zero denominator or elasticity")
)

// feeParametersOf reads what a header says for the next block; the zero value is
// nothing, as before Holocene.
func (r *Rules) feeParametersOf(header *types.Header) (feeParameters, error) {
	extra := header.Extra
	var p feeParameters
	switch forks := &r.config.Forks; {
	case active(forks.Jovian, header.Time):
		if len(extra) != 17 || extra[0] != 1 {
			return p, errExtraJovian
		}
		p.least = binary.BigEndian.Uint64(extra[9:])
	case active(forks.Holocene, header.Time):
		if len(extra) != 9 || extra[0] != 0 {
			return p, errExtraHolocene
		}
	case len(extra) > 0 && header.Number.Sign() > 0: // a genesis block may say what it likes
		return p, errExtraEmpty
	default:
		return p, nil
	}
	p.denominator = uint64(binary.BigEndian.Uint32(extra[1:]))
	p.elasticity = uint64(binary.BigEndian.Uint32(extra[5:]))
	if p.denominator == 0 || p.elasticity == 0 {
		return p, errExtraZero
	}
	return p, nil
}

// baseFee returns the base fee of the block after parent.
func (r *Rules) baseFee(parent *types.Header, time uint64) (*big.Int, error) {
	p, err := r.feeParametersOf(parent)
	if err != nil {
		return nil, err
	}
	if p.denominator == 0 {
		p.denominator, p.elasticity = r.config.Denominator, r.config.Elasticity
		if active(r.config.Forks.Canyon, time) {
			p.denominator = r.config.DenominatorCanyon
		}
	}
	used := parent.GasUsed
	if active(r.config.Forks.Jovian, parent.Time) && parent.BlobGasUsed != nil {
		used = max(used, *parent.BlobGasUsed)
	}
	fee := nextBaseFee(parent, used, p)
	if least := new(big.Int).SetUint64(p.least); fee.Cmp(least) < 0 {
		fee = least
	}
	return fee, nil
}

// nextBaseFee is EIP-1559 with the chain's parameters.
func nextBaseFee(parent *types.Header, used uint64, p feeParameters) *big.Int {
	target := parent.GasLimit / p.elasticity
	if used == target || target == 0 {
		return new(big.Int).Set(parent.BaseFee)
	}
	distance := max(used, target) - min(used, target)
	change := new(big.Int).SetUint64(distance)
	change.Mul(change, parent.BaseFee)
	change.Div(change, new(big.Int).SetUint64(target))
	change.Div(change, new(big.Int).SetUint64(p.denominator))
	if used < target {
		return change.Sub(parent.BaseFee, change)
	}
	if change.Sign() == 0 {
		change.SetUint64(1)
	}
	return change.Add(parent.BaseFee, change)
}
