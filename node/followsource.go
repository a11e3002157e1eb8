// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"glimpse/chain"
	"glimpse/ethapi"
	"glimpse/follow"
	"glimpse/follow/origin"
	"glimpse/follow/upstream"
	"glimpse/jsonrpc"
)

// blockSource lets follow take blocks from the upstreams.
type blockSource struct{ *upstream.Pool }

var _ follow.Source = blockSource{}

// Heads implements follow.Source.
func (s blockSource) Heads(ctx context.Context) (follow.Heads, error) {
	select {
	case h := <-s.Pool.Heads():
		return follow.Heads{Latest: h.Latest, Header: h.Header, Safe: tagged(h.Safe), Finalized: tagged(h.Finalized)}, nil
	case <-ctx.Done():
		return follow.Heads{}, ctx.Err()
	}
}

// tagged is nil for a tag that the upstream does not know.
func tagged(r chain.Ref) *chain.Ref {
	if r.Hash == (chain.Hash{}) {
		return nil
	}
	return &r
}

// Block implements follow.Source.
func (s blockSource) Block(ctx context.Context, h chain.Hash) (*follow.Block, error) {
	return s.BlockByHash(ctx, h)
}

// At implements follow.Source.
func (s blockSource) At(ctx context.Context, n chain.Number) (chain.Hash, error) {
	b, err := s.BlockByNumber(ctx, n)
	if err != nil {
		return chain.Hash{}, err
	}
	return b.Hash, nil
}

// stateSource lets origin read state from the upstreams. With roots it takes
// nothing without a proof.
type stateSource struct {
	*upstream.Pool
	proofs bool
}

var _ origin.PastSource = stateSource{}

// Slots implements origin.Source.
func (s stateSource) Slots(ctx context.Context, at chain.Ref, keys []origin.Key) ([]chain.Value, error) {
	if s.proofs {
		return s.provenSlots(ctx, at, keys)
	}
	q := upstream.Query{Slots: make([]upstream.SlotKey, len(keys))}
	for i, k := range keys {
		q.Slots[i] = upstream.SlotKey(k)
	}
	state, err := s.State(ctx, at, q)
	if err != nil {
		return nil, unavailable(err)
	}
	return state.Slots, nil
}

// Accounts implements origin.Source.
func (s stateSource) Accounts(ctx context.Context, at chain.Ref, addresses []chain.Address) ([]origin.Account, error) {
	if s.proofs {
		return s.provenAccounts(ctx, at, addresses)
	}
	state, err := s.State(ctx, at, upstream.Query{Accounts: addresses})
	if err != nil {
		return nil, unavailable(err)
	}
	accounts := make([]origin.Account, len(addresses))
	for i, a := range state.Accounts {
		accounts[i] = origin.Account(a)
	}
	return accounts, nil
}

// Codes implements origin.Source.
func (s stateSource) Codes(ctx context.Context, at chain.Ref, keys []origin.CodeKey) ([][]byte, error) {
	codes := make([][]byte, len(keys))
	for i, k := range keys {
		var err error
		if codes[i], err = s.Code(ctx, at, k.Address, k.Hash); err != nil {
			return nil, unavailable(err)
		}
	}
	return codes, nil
}

// provenSlots asks for the slots of one account at a time, as proofs are.
func (s stateSource) provenSlots(ctx context.Context, at chain.Ref, keys []origin.Key) ([]chain.Value, error) {
	root, err := s.root(ctx, at)
	if err != nil {
		return nil, err
	}
	places := make(map[chain.Address][]int)
	for i, k := range keys {
		places[k.Address] = append(places[k.Address], i)
	}
	values := make([]chain.Value, len(keys))
	for addr, of := range places {
		slots := make([]chain.Slot, len(of))
		for i, place := range of {
			slots[i] = keys[place].Slot
		}
		proven, err := s.Proof(ctx, at, root, addr, slots)
		if err != nil {
			return nil, unavailable(err)
		}
		for i, place := range of {
			values[place] = proven.Slots[i]
		}
	}
	return values, nil
}

// provenAccounts leaves code to Codes, where its hash proves it.
func (s stateSource) provenAccounts(ctx context.Context, at chain.Ref, addresses []chain.Address) ([]origin.Account, error) {
	root, err := s.root(ctx, at)
	if err != nil {
		return nil, err
	}
	accounts := make([]origin.Account, len(addresses))
	for i, addr := range addresses {
		proven, err := s.Proof(ctx, at, root, addr, nil)
		if err != nil {
			return nil, unavailable(err)
		}
		accounts[i].Account = proven.Account
	}
	return accounts, nil
}

// root returns the state root of a block, whose hash vouches for it.
func (s stateSource) root(ctx context.Context, at chain.Ref) (chain.Hash, error) {
	b, err := s.BlockByHash(ctx, at.Hash)
	if err != nil {
		return chain.Hash{}, unavailable(err)
	}
	return b.Header.Root, nil
}

// Block implements origin.PastSource.
func (s stateSource) Block(ctx context.Context, sel chain.Selector) (chain.Ref, error) {
	var b *upstream.Block
	var err error
	if h, ok := sel.Hash(); ok {
		b, err = s.BlockByHash(ctx, h)
	} else if n, ok := sel.Number(); ok {
		b, err = s.BlockByNumber(ctx, n)
	} else {
		return chain.Ref{}, fmt.Errorf("%s is neither a number nor a hash", sel)
	}
	if errors.Is(err, upstream.ErrNotFound) {
		return chain.Ref{}, &chain.Miss{Reason: chain.UnknownHash}
	}
	if err != nil {
		return chain.Ref{}, unavailable(err)
	}
	return b.Ref, nil
}

// unavailable says what a failure of an upstream means to who asked here.
func unavailable(err error) error { return fmt.Errorf("%w: %w", chain.ErrUnavailable, err) }

// forwarder lets ethapi ask the upstreams for what is not served here.
type forwarder struct{ *upstream.Pool }

var _ ethapi.Forwarder = forwarder{}

// Forward implements ethapi.Forwarder.
func (f forwarder) Forward(ctx context.Context, method string, params []byte) ([]byte, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(params, &list); err != nil {
		return nil, jsonrpc.InvalidParams("%v", err)
	}
	each := make([]any, len(list))
	for i, p := range list {
		each[i] = p
	}
	result, err := f.Pool.Forward(ctx, method, each...)
	var refused *upstream.RPCError
	switch {
	case errors.As(err, &refused):
		return nil, &jsonrpc.Error{Code: refused.Code, Message: refused.Message, Data: refused.Data}
	case err != nil:
		return nil, unavailable(err)
	}
	return result, nil
}
