// SPDX-License-Identifier: Apache-2.0

package evm

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth/tracers/logger"

	"glimpse/chain"
)

// An AccessListResult is what a message touches.
type AccessListResult struct {
	List    types.AccessList // never nil
	GasUsed uint64           // by the message with this list

	// Failure is the EVM's reason where the message failed with the list, nil
	// otherwise. The list is what it touched until then.
	Failure error
}

// AccessList returns the access list with which the message touches nothing
// outside of it. Its errors are those of Call, but a message that fails inside
// the EVM has a list too.
func (r *Rules) AccessList(ctx context.Context, s Scene, m ethereum.CallMsg) (*AccessListResult, error) {
	exclude, err := r.freeAddresses(s, m)
	if err != nil {
		return nil, err
	}
	// A list makes some accesses cheaper, and gas can decide what is accessed
	// next, so the list is settled only when a run with it adds nothing. It
	// only ever grows, and every turn costs gas: ctx ends one that takes long.
	for before := logger.NewAccessListTracer(m.AccessList, exclude); ; {
		m.AccessList = before.AccessList()
		message, err := newMessage(m, s.Header.BaseFee, CallGas)
		if err != nil {
			return nil, err
		}
		tracer := logger.NewAccessListTracer(m.AccessList, exclude)
		result, err := r.run(ctx, s, message, tracer.Hooks())
		if failure := new(CallError); errors.As(err, &failure) {
			return nil, &CallError{Cause: fmt.Errorf("failed to apply transaction: %w", failure.Cause)}
		}
		if err != nil {
			return nil, err
		}
		if tracer.Equal(before) {
			return &AccessListResult{List: m.AccessList, GasUsed: result.UsedGas, Failure: result.Err}, nil
		}
		before = tracer
	}
}

// freeAddresses are those that every transaction has access to: listing them
// would only cost.
func (r *Rules) freeAddresses(s Scene, m ethereum.CallMsg) (map[chain.Address]struct{}, error) {
	free := map[chain.Address]struct{}{m.From: {}}
	if m.To != nil {
		free[*m.To] = struct{}{}
	} else {
		sender, err := s.Base.Account(m.From)
		if err != nil {
			return nil, stateReadError(err)
		}
		free[crypto.CreateAddress(m.From, sender.Nonce)] = struct{}{}
	}
	for addr := range r.allPrecompiles(s.Header) {
		free[addr] = struct{}{}
	}
	for _, auth := range m.AuthorizationList {
		if !auth.ChainID.IsZero() && auth.ChainID.CmpBig(r.config.ChainID) != 0 || auth.Nonce+1 < auth.Nonce {
			continue
		}
		if authority, err := auth.Authority(); err == nil {
			free[authority] = struct{}{}
		}
	}
	return free, nil
}
