// SPDX-License-Identifier: Apache-2.0

package devchain

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"

	"glimpse/chain"
)

// An outcome is what is to be done with a transaction whose turn it is.
type outcome int

const (
	waits outcome = iota // not in this block, or not yet
	runs                 // it can be executed now
	never                // it can not, and no later block will change that
)

// A verdict is an outcome with its reason, nil for runs.
type verdict struct {
	outcome
	reason error
}

// judge says whether a transaction can be executed next, given its sender's
// account and code, the block's header and blob fee, and the space left in it.
// It knows what go-ethereum asks of a transaction before executing it, so that
// executing one that runs seldom fails.
func judge(e *entry, sender chain.Account, code []byte, header *types.Header, blobFee *big.Int, left space) verdict {
	nonce := e.tx.Nonce()
	if _, delegated := types.ParseDelegation(code); len(code) > 0 && !delegated {
		return verdict{never, fmt.Errorf("%w: address %v, len(code): %d", core.ErrSenderNoEOA, e.from, len(code))}
	}
	switch {
	case nonce < sender.Nonce:
		return verdict{never, fmt.Errorf("%w: next nonce %d, tx nonce %d", core.ErrNonceTooLow, sender.Nonce, nonce)}
	case nonce > sender.Nonce:
		return verdict{waits, core.ErrNonceTooHigh}
	}
	if err := checkFees(e.tx, e.from, header, blobFee); err != nil {
		return verdict{waits, err}
	}
	if balance := sender.Balance.ToBig(); balance.Cmp(e.cost) < 0 {
		return verdict{never, fmt.Errorf("%w: balance %v, tx cost %v", core.ErrInsufficientFunds, balance, e.cost)}
	}
	if e.tx.Gas() > header.GasLimit {
		return verdict{never, core.ErrGasLimitReached} // after a reorg to another limit
	}
	if !left.holds(e) {
		return verdict{waits, core.ErrGasLimitReached}
	}
	return verdict{outcome: runs}
}

// headerBytes is more than a header and the lists around it take.
const headerBytes = 4 << 10

// A space is what is left of a block.
type space struct {
	gasLimit, gasUsed         uint64
	blobGasLimit, blobGasUsed uint64
	bytes                     uint64
}

func newSpace(config *params.ChainConfig, header *types.Header) space {
	s := space{gasLimit: header.GasLimit, bytes: headerBytes}
	if header.ExcessBlobGas != nil {
		s.blobGasLimit = eip4844.MaxBlobGasPerBlock(config, header.Time)
	}
	return s
}

func (s *space) holds(e *entry) bool {
	return e.tx.Gas() <= s.gasLimit-s.gasUsed &&
		e.tx.BlobGas() <= s.blobGasLimit-s.blobGasUsed &&
		s.bytes+e.size <= params.MaxBlockSize
}

func (s *space) take(e *entry, gasUsed uint64) {
	s.gasUsed += gasUsed
	s.blobGasUsed += e.tx.BlobGas()
	s.bytes += e.size
}
