// SPDX-License-Identifier: Apache-2.0

package devchain

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/txpool"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto/kzg4844"
	"github.com/ethereum/go-ethereum/params"

	"glimpse/chain"
	"glimpse/evm"
)

// What a transaction may be long, as in go-ethereum. Blobs count.
const (
	maxTransactionBytes = 128 << 10
	maxBlobBytes        = 1 << 20
)

const allTypes = 1<<types.LegacyTxType | 1<<types.AccessListTxType | 1<<types.DynamicFeeTxType | 1<<types.BlobTxType | 1<<types.SetCodeTxType

// DecodeTransaction reads a transaction as eth_sendRawTransaction is given it: of
// any type, with its blobs where it has some. The error is a *Refusal.
func DecodeTransaction(raw []byte) (*types.Transaction, error) {
	if len(raw) > maxBlobBytes {
		return nil, refuse(fmt.Errorf("%w: transaction size %d, limit %d", txpool.ErrOversizedData, len(raw), maxBlobBytes))
	}
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(raw); err != nil {
		return nil, refuse(err)
	}
	return tx, nil
}

// validate checks all that can be said of a transaction without the state, for
// the next block, and returns it as it waits. It is safe for concurrent use.
func validate(tx *types.Transaction, rules *evm.Rules, next *types.Header, minTip *big.Int) (*entry, error) {
	tx, err := modernBlobs(tx, rules.Signer(next))
	if err != nil {
		return nil, err
	}
	options := &txpool.ValidationOptions{
		Config: rules.Config(), Accept: allTypes,
		MaxSize: maxTransactionBytes, MaxBlobCount: params.BlobTxMaxBlobs, MinTip: minTip,
	}
	if tx.Type() == types.BlobTxType {
		options.MaxSize = maxBlobBytes
	}
	if err := txpool.ValidateTransaction(tx, next, rules.Signer(next), options); err != nil {
		return nil, err
	}
	if err := checkBlobs(tx); err != nil {
		return nil, err
	}
	from, err := types.Sender(rules.Signer(next), tx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", txpool.ErrInvalidSender, err)
	}
	return newEntry(tx, from), nil
}

// modernBlobs gives blobs that came with the proofs of before Osaka today's, as
// go-ethereum does. That is work, so it is done only for a transaction that
// somebody signed and that is not too large.
func modernBlobs(tx *types.Transaction, signer types.Signer) (*types.Transaction, error) {
	sidecar := tx.BlobTxSidecar()
	if sidecar == nil || sidecar.Version != types.BlobSidecarVersion0 {
		return tx, nil
	}
	if len(sidecar.Blobs) > params.BlobTxMaxBlobs {
		return nil, fmt.Errorf("%w: blob count %d, limit %d", txpool.ErrTxBlobLimitExceeded, len(sidecar.Blobs), params.BlobTxMaxBlobs)
	}
	if _, err := types.Sender(signer, tx); err != nil {
		return nil, fmt.Errorf("%w: %w", txpool.ErrInvalidSender, err)
	}
	sidecar = sidecar.Copy() // the caller's is not ours to change
	if err := sidecar.ToV1(); err != nil {
		return nil, fmt.Errorf("blob sidecar conversion failed: %w", err)
	}
	return tx.WithBlobTxSidecar(sidecar), nil
}

// checkBlobs checks what txpool.ValidateTransaction leaves out: that there are
// blobs, and that they are the ones that the transaction commits to.
func checkBlobs(tx *types.Transaction) error {
	sidecar := tx.BlobTxSidecar()
	if tx.Type() != types.BlobTxType {
		return nil
	}
	if len(tx.BlobHashes()) == 0 {
		return core.ErrMissingBlobHashes
	}
	if len(sidecar.Blobs) != len(sidecar.Commitments) {
		return fmt.Errorf("%w: %d blobs, %d commitments", txpool.ErrSidecarFormatError, len(sidecar.Blobs), len(sidecar.Commitments))
	}
	if err := kzg4844.VerifyCellProofs(sidecar.Blobs, sidecar.Commitments, sidecar.Proofs); err != nil {
		return fmt.Errorf("%w: %w", txpool.ErrKZGVerificationError, err)
	}
	return nil
}

// checkFees refuses what could not be in the next block for its fees.
// go-ethereum lets such transactions wait; on a chain for trying things out
// that would look like a chain that is stuck.
func checkFees(tx *types.Transaction, from chain.Address, next *types.Header, blobFee *big.Int) error {
	if tx.GasFeeCapIntCmp(next.BaseFee) < 0 {
		return fmt.Errorf("%w: address %v, maxFeePerGas: %s, baseFee: %s", core.ErrFeeCapTooLow, from, tx.GasFeeCap(), next.BaseFee)
	}
	if tx.Type() == types.BlobTxType && tx.BlobGasFeeCapIntCmp(blobFee) < 0 {
		return fmt.Errorf("%w: address %v blobGasFeeCap: %v, blobBaseFee: %v", core.ErrBlobFeeCapTooLow, from, tx.BlobGasFeeCap(), blobFee)
	}
	return nil
}
