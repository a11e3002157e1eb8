// SPDX-License-Identifier: Apache-2.0

package merkle

import (
	"bytes"
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/trie"

	"glimpse/chain"
)

// Check verifies that the stored tries hold exactly the flat state of their
// block: every account and slot is in its trie with its value, and there are no
// others. Since each node read has the hash that its parent names, the root of
// the tries is then the root of the flat state. Nothing may be applied and not
// committed. It goes through the state in bounded memory.
//
// A disagreement wraps chain.ErrCorrupt and names the account.
func (s *State) Check(ctx context.Context, flat Flat) error {
	c := checker{state: s, flat: flat}
	if err := c.accounts(ctx); err != nil {
		return fmt.Errorf("check state tries: %w", err)
	}
	return nil
}

// checkPage is how many entries are looked up before a trie is opened anew,
// which drops the nodes that it has read.
const checkPage = 4096

type checker struct {
	state *State
	flat  Flat
}

func (c *checker) accounts(ctx context.Context) error {
	count := 0
	var after *chain.Address
	for more := true; more; {
		var page []chain.AccountDiff
		var err error
		if page, more, err = c.flat.Accounts(after, checkPage); err != nil {
			return err
		}
		c.state.Discard()
		if err := c.state.openAccounts(); err != nil {
			return err
		}
		for i := range page {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := c.account(ctx, &page[i]); err != nil {
				return fmt.Errorf("account %s: %w", page[i].Address, err)
			}
			after = &page[i].Address
		}
		count += len(page)
	}
	c.state.Discard()
	return c.sameCount(ctx, "accounts", trie.StateTrieID(c.state.root), count)
}

func (c *checker) account(ctx context.Context, want *chain.AccountDiff) error {
	owner := crypto.Keccak256Hash(want.Address[:])
	got, err := c.state.account(owner)
	switch {
	case err != nil:
		return err
	case got == nil:
		return fmt.Errorf("%w: not in the account trie", chain.ErrCorrupt)
	}
	a := &want.Account
	if got.Nonce != a.Nonce || !got.Balance.Eq(&a.Balance) || !bytes.Equal(got.CodeHash, codeHash(a)) {
		return fmt.Errorf("%w: the account trie has %+v, want %+v", chain.ErrCorrupt, got, a)
	}
	return c.storage(ctx, want.Address, trie.StorageTrieID(c.state.root, owner, got.Root))
}

func (c *checker) storage(ctx context.Context, addr chain.Address, id *trie.ID) error {
	count := 0
	var after *chain.Slot
	for more := true; more; {
		var page []chain.SlotDiff
		var err error
		if page, more, err = c.flat.Slots(addr, after, checkPage); err != nil {
			return err
		}
		slots, err := trie.New(id, c.state.source)
		if err != nil {
			return err
		}
		for i, s := range page {
			key := crypto.Keccak256Hash(s.Slot[:])
			got, err := slots.Get(key[:])
			if err != nil {
				return err
			}
			if want := encodeSlot(s.Value); !bytes.Equal(got, want) {
				return fmt.Errorf("%w: slot %s: the trie has %x, want %x", chain.ErrCorrupt, s.Slot, got, want)
			}
			after = &page[i].Slot
		}
		count += len(page)
	}
	return c.sameCount(ctx, "slots", id, count)
}

// sameCount compares how many leaves a trie has with how many were looked up.
func (c *checker) sameCount(ctx context.Context, what string, id *trie.ID, want int) error {
	tr, err := trie.New(id, c.state.source)
	if err != nil {
		return err
	}
	nodes, err := tr.NodeIterator(nil)
	if err != nil {
		return err
	}
	got := 0
	for nodes.Next(true) {
		if nodes.Leaf() {
			got++
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	if err := nodes.Error(); err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%w: the trie has %d %s, want %d", chain.ErrCorrupt, got, what, want)
	}
	return nil
}
