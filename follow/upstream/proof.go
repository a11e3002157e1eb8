// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/holiman/uint256"

	"glimpse/chain"
)

// A Proven is an account with some of its slots, as a state root commits to
// them.
type Proven struct {
	Account chain.Account
	Slots   []chain.Value // in the order asked for
}

// Proof fetches an account and slots of it with their proofs and verifies these
// against the state root of the block, absence too. What does not lead to the
// root is a *LieError, which names the account or the slot and the upstream.
// ErrCannot where no upstream has eth_getProof.
func (p *Pool) Proof(ctx context.Context, at chain.Ref, root chain.Hash, addr chain.Address, slots []chain.Slot) (proven *Proven, err error) {
	able := func(c *Capabilities) bool { return c.Proofs }
	err = p.on(ctx, able, func(ctx context.Context, e *endpoint) (err error) {
		proven, err = e.proof(ctx, at, root, addr, slots)
		return err
	})
	return proven, err
}

// proofAnswer is the result of eth_getProof.
type proofAnswer struct {
	AccountProof []hexutil.Bytes `json:"accountProof"`
	Nonce        *hexutil.Uint64 `json:"nonce"`
	Balance      *hexutil.U256   `json:"balance"`
	CodeHash     *chain.Hash     `json:"codeHash"`
	StorageProof []struct {
		Value *hexutil.U256   `json:"value"`
		Proof []hexutil.Bytes `json:"proof"`
	} `json:"storageProof"`
}

func (e *endpoint) proof(ctx context.Context, at chain.Ref, root chain.Hash, addr chain.Address, slots []chain.Slot) (*Proven, error) {
	results, err := e.pinned(ctx, at, func(block any) []request {
		if slots == nil {
			slots = []chain.Slot{}
		}
		return []request{ask("eth_getProof", addr, slots, block)}
	})
	if err != nil {
		return nil, err
	}
	var a proofAnswer
	if err := json.Unmarshal(results[0], &a); err != nil {
		return nil, e.fail("eth_getProof", fmt.Errorf("%w: %w", errMalformed, err))
	}
	if a.Nonce == nil || a.Balance == nil || a.CodeHash == nil || len(a.StorageProof) != len(slots) {
		return nil, e.fail("eth_getProof", fmt.Errorf("%w: a field or a slot is missing", errMalformed))
	}
	account, storage, err := a.account(root, addr)
	if err != nil {
		return nil, &LieError{Upstream: e.name, Block: at, Address: &addr, What: err.Error()}
	}
	proven := &Proven{Account: account, Slots: make([]chain.Value, len(slots))}
	for i, slot := range slots {
		given := a.StorageProof[i]
		proven.Slots[i], err = proveSlot(storage, slot, given.Proof)
		switch {
		case err != nil:
		case given.Value == nil:
			err = fmt.Errorf("says nothing, proves %s", proven.Slots[i])
		case (*uint256.Int)(given.Value).Bytes32() != proven.Slots[i]:
			err = fmt.Errorf("says %s, proves %s", chain.Value((*uint256.Int)(given.Value).Bytes32()), proven.Slots[i])
		}
		if err != nil {
			return nil, &LieError{Upstream: e.name, Block: at, Address: &addr, Slot: &slots[i], What: err.Error()}
		}
	}
	return proven, nil
}

// account proves an account and returns it with its storage root.
func (a *proofAnswer) account(root chain.Hash, addr chain.Address) (account chain.Account, storage chain.Hash, err error) {
	value, err := prove(root, crypto.Keccak256(addr[:]), a.AccountProof)
	if err != nil {
		return chain.Account{}, chain.Hash{}, err
	}
	claimed := chain.Account{Nonce: uint64(*a.Nonce), Balance: uint256.Int(*a.Balance), CodeHash: *a.CodeHash}
	if claimed.CodeHash == types.EmptyCodeHash {
		claimed.CodeHash = chain.Hash{}
	}
	storage = types.EmptyRootHash
	if len(value) > 0 {
		var stored types.StateAccount
		if err := rlp.DecodeBytes(value, &stored); err != nil {
			return chain.Account{}, chain.Hash{}, fmt.Errorf("proves an account that cannot be read: %w", err)
		}
		account = chain.Account{Exists: true, Nonce: stored.Nonce, Balance: *stored.Balance, CodeHash: chain.Hash(stored.CodeHash)}
		if account.CodeHash == types.EmptyCodeHash {
			account.CodeHash = chain.Hash{}
		}
		storage = stored.Root
	}
	claimed.Exists = account.Exists
	if claimed != account {
		return chain.Account{}, chain.Hash{}, fmt.Errorf("says nonce %d, balance %s, code %s; proves nonce %d, balance %s, code %s",
			claimed.Nonce, &claimed.Balance, claimed.CodeHash, account.Nonce, &account.Balance, account.CodeHash)
	}
	return account, storage, nil
}

func proveSlot(root chain.Hash, slot chain.Slot, proof []hexutil.Bytes) (v chain.Value, err error) {
	value, err := prove(root, crypto.Keccak256(slot[:]), proof)
	if err != nil || len(value) == 0 {
		return chain.Value{}, err
	}
	_, content, rest, err := rlp.Split(value)
	if err != nil || len(rest) > 0 || len(content) > len(v) {
		return chain.Value{}, errors.New("proves a value that cannot be read")
	}
	v.SetBytes(content)
	return v, nil
}

// prove returns the value that a trie has under a key, empty where it is proven
// that there is none.
func prove(root chain.Hash, key []byte, proof []hexutil.Bytes) ([]byte, error) {
	if root == types.EmptyRootHash {
		return nil, nil // nothing is in it, and there is no node to show
	}
	nodes := make(proofNodes, len(proof))
	for _, node := range proof {
		nodes[crypto.Keccak256Hash(node)] = node
	}
	value, err := trie.VerifyProof(root, key, nodes)
	if err != nil {
		return nil, fmt.Errorf("the proof does not lead to the root: %w", err)
	}
	return value, nil
}

// proofNodes are the nodes of a proof under their hashes.
type proofNodes map[chain.Hash][]byte

func (n proofNodes) Has(key []byte) (bool, error) {
	_, ok := n[chain.Hash(key)]
	return ok, nil
}

func (n proofNodes) Get(key []byte) ([]byte, error) {
	if node, ok := n[chain.Hash(key)]; ok {
		return slices.Clone(node), nil
	}
	return nil, errors.New("a node is missing")
}
