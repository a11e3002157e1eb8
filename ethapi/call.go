// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"fmt"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
)

func call(s *session, dst []byte, args *arguments) ([]byte, error) {
	scene, message, err := s.callParameters(args)
	if err != nil {
		return nil, err
	}
	ctx, done, err := s.costly()
	if err != nil {
		return nil, err
	}
	defer done()
	output, err := s.api.config.EVM.Call(ctx, scene, message)
	if err != nil {
		return nil, fmt.Errorf("call: %w", err)
	}
	return appendData(dst, output), nil
}

func estimateGas(s *session, dst []byte, args *arguments) ([]byte, error) {
	scene, message, err := s.callParameters(args)
	if err != nil {
		return nil, err
	}
	ctx, done, err := s.costly()
	if err != nil {
		return nil, err
	}
	defer done()
	gas, err := s.api.config.EVM.EstimateGas(ctx, scene, message)
	if err != nil {
		return nil, fmt.Errorf("estimate gas: %w", err)
	}
	return appendQuantity(dst, gas), nil
}

func createAccessList(s *session, dst []byte, args *arguments) ([]byte, error) {
	message, sel := args.message(s.api.config.ChainID), args.block()
	accounts := args.stateOverrides()
	scene, err := s.scene(args, sel, accounts, blockOverrides{})
	if err != nil {
		return nil, err
	}
	ctx, done, err := s.costly()
	if err != nil {
		return nil, err
	}
	defer done()
	list, gas, failure, err := s.api.config.EVM.AccessList(ctx, scene, message)
	if err != nil {
		return nil, fmt.Errorf("create access list: %w", err)
	}
	return appendJSON(dst, struct {
		AccessList types.AccessList `json:"accessList"`
		Error      string           `json:"error,omitempty"`
		GasUsed    hexutil.Uint64   `json:"gasUsed"`
	}{list, failure, hexutil.Uint64(gas)})
}

// callParameters takes what eth_call and eth_estimateGas are given.
func (s *session) callParameters(args *arguments) (Scene, ethereum.CallMsg, error) {
	message, sel := args.message(s.api.config.ChainID), args.block()
	accounts, changed := args.stateOverrides(), args.blockOverrides()
	scene, err := s.scene(args, sel, accounts, changed)
	return scene, message, err
}

// scene ends the parameters and opens the block that sel means, with what the
// caller wants to be different in it.
func (s *session) scene(args *arguments, sel chain.Selector, accounts stateOverrides, changed blockOverrides) (Scene, error) {
	if err := args.done(); err != nil {
		return Scene{}, err
	}
	b, err := s.blockOf(sel)
	if err != nil {
		return Scene{}, err
	}
	view, err := s.View(sel)
	if err != nil {
		return Scene{}, err
	}
	scene := Scene{Header: b.header, Base: view, Ancestor: b.ancestor}
	changed.apply(&scene)
	if len(accounts) > 0 {
		if err := accounts.check(s.api.config.EVM.Precompiles(scene.Header)); err != nil {
			return Scene{}, err
		}
		scene.Base = newOverriddenView(view, accounts)
	}
	return scene, nil
}

// message takes the transaction object of a call.
func (a *arguments) message(chainID uint64) (m ethereum.CallMsg) {
	if v, given := a.required(); given {
		var err error
		if m, err = parseMessage(v, chainID); err != nil {
			a.refuse("transaction", err.Error())
		}
	}
	return m
}
