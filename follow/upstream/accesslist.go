// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/chain"
)

// ErrAccessList says that an access list is malformed, or not the one that its
// hash commits to.
var ErrAccessList = errors.New("bad access list")

// AccessListDiff returns what a block, or a flashblock, changed, from its
// EIP-7928 access list and the state before it. Values that the list puts back
// to what base holds are left out. Nothing is executed: what the list's maker
// says is what the Diff says.
func AccessListDiff(list bal.BlockAccessList, base chain.View) (*chain.Diff, error) {
	f := newFold(base)
	for i := range list {
		if _, twice := f.accounts[list[i].Address]; twice {
			return nil, fmt.Errorf("%w: account %s twice", ErrAccessList, list[i].Address)
		}
		a, err := f.account(list[i].Address)
		if err != nil {
			return nil, err
		}
		if err := f.applyAccess(a, &list[i]); err != nil {
			return nil, fmt.Errorf("%w: account %s: %w", ErrAccessList, list[i].Address, err)
		}
	}
	return f.diff()
}

// applyAccess takes the last of each series of changes. They must be in order,
// so that the last one is the last.
func (f *fold) applyAccess(a *folded, access *bal.AccountAccess) error {
	var order inOrder
	for _, slot := range access.StorageChanges {
		if slot.Slot == nil || len(slot.SlotChanges) == 0 {
			return errors.New("a slot without a key or a value")
		}
		key := chain.Slot(slot.Slot.Bytes32())
		if _, twice := a.slots[key]; twice {
			return fmt.Errorf("slot %s twice", key)
		}
		order.begin()
		for _, write := range slot.SlotChanges {
			if write.PostValue == nil {
				return fmt.Errorf("slot %s has no value", key)
			}
			order.next(write.BlockAccessIndex)
			a.slots[key] = write.PostValue.Bytes32()
		}
	}
	order.begin()
	for _, change := range access.BalanceChanges {
		if change.PostBalance == nil {
			return errors.New("a balance is missing")
		}
		order.next(change.BlockAccessIndex)
		a.now.Balance = *change.PostBalance
	}
	order.begin()
	for _, change := range access.NonceChanges {
		order.next(change.BlockAccessIndex)
		a.now.Nonce = change.PostNonce
	}
	order.begin()
	for _, change := range access.CodeChanges {
		order.next(change.BlockAccessIndex)
		f.setCode(a, change.NewCode)
	}
	if order.broken {
		return errors.New("changes are out of order")
	}
	return nil
}

// inOrder sees that indexes of each series rise.
type inOrder struct {
	least  int64
	broken bool
}

func (o *inOrder) begin() { o.least = 0 }

func (o *inOrder) next(index uint32) {
	o.broken = o.broken || int64(index) < o.least
	o.least = int64(index) + 1
}

// DecodeAccessList reads the RLP form of EIP-7928, which must have the given
// hash; the zero hash is one that nobody gave.
func DecodeAccessList(raw []byte, hash chain.Hash) (bal.BlockAccessList, error) {
	if got := crypto.Keccak256Hash(raw); hash != (chain.Hash{}) && got != hash {
		return nil, fmt.Errorf("%w: hash %s, want %s", ErrAccessList, got, hash)
	}
	var list bal.BlockAccessList
	if err := rlp.DecodeBytes(raw, &list); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAccessList, err)
	}
	return list, nil
}

// AccessList fetches the access list of a block, as its header commits to it.
// ErrCannot where the header has none, or no upstream serves them.
func (p *Pool) AccessList(ctx context.Context, b *Block) (list bal.BlockAccessList, err error) {
	if b.Header.BlockAccessListHash == nil {
		return nil, fmt.Errorf("%w: block %s has no access list", ErrCannot, b.Ref)
	}
	able := func(c *Capabilities) bool { return c.AccessLists }
	err = p.on(ctx, able, func(ctx context.Context, e *endpoint) error {
		result, err := e.call(ctx, "eth_getBlockAccessList", b.Hash)
		if err != nil {
			return notFound(err)
		}
		list, err = ParseAccessList(result, *b.Header.BlockAccessListHash)
		if err != nil {
			return &LieError{Upstream: e.name, Block: b.Ref, What: err.Error()}
		}
		return nil
	})
	return list, err
}

// ParseAccessList reads an access list in any of the forms that feeds and
// nodes send, and compares its hash, unless that is zero: nobody gave one.
//
//   - a string: the RLP of EIP-7928 in hex; the hash is of that RLP. X Layer
//     sends this.
//   - an array of account changes; the hash is of its RLP as in EIP-7928. Nodes
//     answer so.
//   - an object with changes, min_tx_index and max_tx_index; the hash is of the
//     RLP of these three. World Chain sends this.
//   - an object with account_changes and fal_hash, which is of the changes'
//     RLP. Base describes this.
func ParseAccessList(raw json.RawMessage, hash chain.Hash) (bal.BlockAccessList, error) {
	var text hexutil.Bytes
	if json.Unmarshal(raw, &text) == nil && !isNull(raw) {
		return DecodeAccessList(text, hash)
	}
	var object struct {
		Changes  json.RawMessage `json:"changes"`
		Accounts json.RawMessage `json:"account_changes"`
		Least    flexibleNumber  `json:"min_tx_index"`
		Most     flexibleNumber  `json:"max_tx_index"`
		Hash     *chain.Hash     `json:"fal_hash"`
	}
	changes := raw
	if isObject := json.Unmarshal(raw, &object) == nil; isObject {
		changes = object.Changes
		if changes == nil {
			changes = object.Accounts
		}
	}
	list, err := parseAccounts(changes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAccessList, err)
	}
	var hashed any = list
	if object.Changes != nil {
		hashed = []any{list, uint64(object.Least), uint64(object.Most)}
	}
	if object.Hash != nil && hash == (chain.Hash{}) {
		hash = *object.Hash
	}
	if hash == (chain.Hash{}) {
		return list, nil
	}
	encoded, err := rlp.EncodeToBytes(hashed)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAccessList, err)
	}
	if got := crypto.Keccak256Hash(encoded); got != hash {
		return nil, fmt.Errorf("%w: hash %s, want %s", ErrAccessList, got, hash)
	}
	return list, nil
}
