// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/ethapi"
	"glimpse/evm"
)

// caller lets ethapi execute messages by the rules of the chain.
type caller struct{ rules *evm.Rules }

var _ ethapi.EVM = caller{}

func (c caller) Call(ctx context.Context, s ethapi.Scene, m ethereum.CallMsg) ([]byte, error) {
	result, err := c.rules.Call(ctx, scene(s), m)
	if err != nil {
		return nil, callError(err)
	}
	return result.Output, nil
}

func (c caller) EstimateGas(ctx context.Context, s ethapi.Scene, m ethereum.CallMsg) (uint64, error) {
	gas, err := c.rules.EstimateGas(ctx, scene(s), m)
	return gas, callError(err)
}

func (c caller) AccessList(ctx context.Context, s ethapi.Scene, m ethereum.CallMsg) (list types.AccessList, gasUsed uint64, failure string, err error) {
	result, err := c.rules.AccessList(ctx, scene(s), m)
	if err != nil {
		return nil, 0, "", callError(err)
	}
	if result.Failure != nil {
		failure = result.Failure.Error()
	}
	return result.List, result.GasUsed, failure, nil
}

func (c caller) Precompiles(header *types.Header) map[string]chain.Address {
	return c.rules.Precompiles(header)
}

func scene(s ethapi.Scene) evm.Scene {
	return evm.Scene{Header: s.Header, BlobBaseFee: s.BlobBaseFee, Base: s.Base, Ancestors: s.Ancestor}
}

// callError leaves errors alone that are not about the message.
func callError(err error) error {
	if failed := new(evm.CallError); errors.As(err, &failed) {
		return &ethapi.CallError{Message: failed.Error(), Reverted: failed.Reverted, Revert: failed.Revert}
	}
	return err
}
