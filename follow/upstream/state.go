// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"

	"glimpse/chain"
)

// A SlotKey names one slot of one account.
type SlotKey struct {
	Address chain.Address
	Slot    chain.Slot
}

// A Query is what is asked about the state of a block.
type Query struct {
	Accounts []chain.Address
	Slots    []SlotKey
}

// A State is the answer to a Query, in its order.
type State struct {
	Accounts []Account
	Slots    []chain.Value
}

// An Account is an account with its code, which has the account's code hash.
type Account struct {
	chain.Account
	Code []byte // nil where there is none
}

// State asks for all of a Query in as few batches as possible, of one upstream
// and at one block, which must be canonical there: it is named by its hash, or,
// where the upstream does not take that, its height is seen to still have that
// hash afterwards.
//
// The values are the upstream's word; Proof gives those that are not. An account
// with neither nonce, balance nor code does not exist.
func (p *Pool) State(ctx context.Context, at chain.Ref, q Query) (state *State, err error) {
	err = p.on(ctx, nil, func(ctx context.Context, e *endpoint) (err error) {
		state, err = e.readState(ctx, at, q)
		return err
	})
	return state, err
}

// Slot asks for one slot, as State does.
func (p *Pool) Slot(ctx context.Context, at chain.Ref, addr chain.Address, slot chain.Slot) (chain.Value, error) {
	state, err := p.State(ctx, at, Query{Slots: []SlotKey{{addr, slot}}})
	if err != nil {
		return chain.Value{}, err
	}
	return state.Slots[0], nil
}

// Account asks for one account with its code, as State does.
func (p *Pool) Account(ctx context.Context, at chain.Ref, addr chain.Address) (Account, error) {
	state, err := p.State(ctx, at, Query{Accounts: []chain.Address{addr}})
	if err != nil {
		return Account{}, err
	}
	return state.Accounts[0], nil
}

// Code asks for the code of an account, which must have the given hash; any
// other is a lie.
func (p *Pool) Code(ctx context.Context, at chain.Ref, addr chain.Address, hash chain.Hash) (code []byte, err error) {
	err = p.on(ctx, nil, func(ctx context.Context, e *endpoint) error {
		results, err := e.pinned(ctx, at, func(block any) []request {
			return []request{ask("eth_getCode", addr, block)}
		})
		if err != nil {
			return err
		}
		if code, err = decodeBytes(results[0]); err != nil {
			return e.fail("eth_getCode", err)
		}
		if got := hashOf(code); got != hash {
			return &LieError{Upstream: e.name, Block: at, Address: &addr, What: fmt.Sprintf("code with hash %s, want %s", got, hash)}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return code, nil
}

// pinned asks questions about one block, which the endpoint names in the way
// that is safe with it.
func (e *endpoint) pinned(ctx context.Context, at chain.Ref, questions func(block any) []request) ([]json.RawMessage, error) {
	can := e.snapshot().can
	if can != nil && can.RequireCanonical {
		block := map[string]any{"blockHash": at.Hash, "requireCanonical": true}
		return e.results(ctx, questions(block))
	}
	results, err := e.results(ctx, questions(hexNumber(at.Number)))
	if err != nil {
		return nil, err
	}
	return results, e.stillCanonical(ctx, at)
}

func (e *endpoint) stillCanonical(ctx context.Context, at chain.Ref) error {
	const method = "eth_getBlockByNumber"
	result, err := e.call(ctx, method, hexNumber(at.Number), false)
	if err != nil {
		return notFound(err)
	}
	head, err := decodeHead(result)
	if err != nil {
		return e.fail(method, err)
	}
	if head.Latest != at {
		return e.fail(method, fmt.Errorf("%w: block %s; at that height there is %s", ErrNotFound, at, head.Latest.Hash))
	}
	return nil
}

func (e *endpoint) readState(ctx context.Context, at chain.Ref, q Query) (*State, error) {
	const perAccount = 3
	results, err := e.pinned(ctx, at, func(block any) []request {
		requests := make([]request, 0, perAccount*len(q.Accounts)+len(q.Slots))
		for _, addr := range q.Accounts {
			requests = append(requests,
				ask("eth_getTransactionCount", addr, block),
				ask("eth_getBalance", addr, block),
				ask("eth_getCode", addr, block))
		}
		for _, key := range q.Slots {
			requests = append(requests, ask("eth_getStorageAt", key.Address, key.Slot, block))
		}
		return requests
	})
	if err != nil {
		return nil, err
	}
	state := &State{Accounts: make([]Account, len(q.Accounts)), Slots: make([]chain.Value, len(q.Slots))}
	for i := range state.Accounts {
		if state.Accounts[i], err = decodeAccount(results[perAccount*i:]); err != nil {
			return nil, e.fail("account "+q.Accounts[i].Hex(), err)
		}
	}
	for i := range state.Slots {
		if state.Slots[i], err = decodeValue(results[perAccount*len(q.Accounts)+i]); err != nil {
			return nil, e.fail("eth_getStorageAt", err)
		}
	}
	return state, nil
}

// decodeAccount reads nonce, balance and code.
func decodeAccount(results []json.RawMessage) (a Account, err error) {
	var nonce hexutil.Uint64
	if err := json.Unmarshal(results[0], &nonce); err != nil {
		return Account{}, fmt.Errorf("%w: nonce: %w", errMalformed, err)
	}
	var balance hexutil.U256
	if err := json.Unmarshal(results[1], &balance); err != nil {
		return Account{}, fmt.Errorf("%w: balance: %w", errMalformed, err)
	}
	if a.Code, err = decodeBytes(results[2]); err != nil {
		return Account{}, err
	}
	a.Nonce, a.Balance, a.CodeHash = uint64(nonce), uint256.Int(balance), hashOf(a.Code)
	a.Exists = a.Nonce != 0 || !a.Balance.IsZero() || len(a.Code) > 0
	return a, nil
}

func decodeBytes(raw json.RawMessage) ([]byte, error) {
	var code hexutil.Bytes
	if err := json.Unmarshal(raw, &code); err != nil {
		return nil, fmt.Errorf("%w: code: %w", errMalformed, err)
	}
	if len(code) == 0 {
		return nil, nil
	}
	return code, nil
}

// decodeValue takes the 32 bytes of the standard, and shorter forms: some nodes
// leave out leading zeros. Nothing at all is not zero.
func decodeValue(raw json.RawMessage) (v chain.Value, err error) {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return v, fmt.Errorf("%w: value: %w", errMalformed, err)
	}
	if len(text)%2 == 1 && len(text) > 2 {
		text = "0x0" + text[2:]
	}
	data, err := hexutil.Decode(text)
	if err != nil || len(data) == 0 || len(data) > len(v) {
		return v, fmt.Errorf("%w: value %q", errMalformed, clip(text))
	}
	v.SetBytes(data)
	return v, nil
}

// hashOf is the code hash as chain.Account has it: zero where there is no code.
func hashOf(code []byte) chain.Hash {
	if len(code) == 0 {
		return chain.Hash{}
	}
	return crypto.Keccak256Hash(code)
}
