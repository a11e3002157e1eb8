// SPDX-License-Identifier: Apache-2.0

package merkle

import (
	"fmt"

	"glimpse/chain"
)

// Flat lists the state of one block in pages, in key order.
type Flat interface {
	// Accounts returns at most limit accounts that exist, as changes from
	// nothing and without slots: those after the given address, or the first
	// ones for nil. more says that others follow.
	Accounts(after *chain.Address, limit int) (accounts []chain.AccountDiff, more bool, err error)

	// Slots returns at most limit slots of an account that are not zero: those
	// after the given one, or the first ones for nil.
	Slots(addr chain.Address, after *chain.Slot, limit int) (slots []chain.SlotDiff, more bool, err error)
}

// rebuildPage is how many accounts or slots are read at a time, and so, within
// a small factor, how many trie nodes are in memory at once.
const rebuildPage = 4096

// Rebuild computes the tries of a block from its flat state and stores them
// through write, in batches of bounded size that nodes must show as soon as
// write returns. All tries stored before are deleted. The root record comes
// with the last batch: a Rebuild that was cut short leaves a store whose State
// is At no block, and is started over.
//
// The State that Rebuild returns stands at block. The caller compares its root
// with the header's.
func Rebuild(flat Flat, nodes Nodes, cacheBytes int, block chain.Ref, write func([]Write) error) (*State, error) {
	cleared := []Write{
		{Key: []byte{rootRecord}},
		{Key: []byte{accountNode}, Prefix: true},
		{Key: []byte{storageNode}, Prefix: true},
	}
	if err := write(cleared); err != nil {
		return nil, fmt.Errorf("clear tries: %w", err)
	}
	s, err := Open(nodes, cacheBytes)
	if err != nil {
		return nil, err
	}
	b := builder{flat: flat, state: s, write: write}
	if err := b.allAccounts(); err != nil {
		return nil, err
	}
	if err := write(s.Commit(block)); err != nil {
		return nil, fmt.Errorf("write trie nodes: %w", err)
	}
	return s, nil
}

// A builder fills a State with flat state and writes its nodes out each time
// that about a page has been applied.
type builder struct {
	flat    Flat
	state   *State
	write   func([]Write) error
	applied int // accounts and slots since the last batch
}

func (b *builder) allAccounts() error {
	var after *chain.Address
	for more := true; more; {
		var page []chain.AccountDiff
		var err error
		if page, more, err = b.flat.Accounts(after, rebuildPage); err != nil {
			return fmt.Errorf("list accounts: %w", err)
		}
		for _, account := range page {
			if err := b.account(account); err != nil {
				return err
			}
			after = &account.Address
		}
	}
	return nil
}

// account applies one account with its first slots, then the rest of them.
func (b *builder) account(account chain.AccountDiff) error {
	var after *chain.Slot
	for more := true; more; {
		var err error
		if account.Slots, more, err = b.flat.Slots(account.Address, after, rebuildPage); err != nil {
			return fmt.Errorf("list slots of %s: %w", account.Address, err)
		}
		if err := b.apply(account); err != nil {
			return err
		}
		if n := len(account.Slots); n > 0 {
			after = &account.Slots[n-1].Slot
		}
		account.Changed, account.Account = false, chain.Account{}
	}
	return nil
}

func (b *builder) apply(account chain.AccountDiff) error {
	if !account.Changed && len(account.Slots) == 0 {
		return nil
	}
	if err := b.state.put(&chain.Diff{Accounts: []chain.AccountDiff{account}}); err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	b.applied += 1 + len(account.Slots)
	if b.applied < rebuildPage {
		return nil
	}
	b.applied = 0
	if err := b.write(b.state.flush()); err != nil {
		return fmt.Errorf("write trie nodes: %w", err)
	}
	return nil
}
