// SPDX-License-Identifier: Apache-2.0

package merkle

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"

	"glimpse/chain"
	"glimpse/internal/parallel"
)

// An update is the account of one AccountDiff on its way into the account trie.
type update struct {
	diff    *chain.AccountDiff
	owner   chain.Hash
	account *types.StateAccount
	storage *trie.Trie // nil where no slot changes
}

// Apply puts d on top of all that was applied before and returns the state
// root. After an error the State must be discarded.
func (s *State) Apply(d *chain.Diff) (chain.Hash, error) {
	if err := s.put(d); err != nil {
		return chain.Hash{}, err
	}
	return s.accounts.Hash(), nil
}

// put is Apply without hashing the account trie.
func (s *State) put(d *chain.Diff) error {
	if err := s.openAccounts(); err != nil {
		return err
	}
	updates := make([]update, len(d.Accounts))
	for i := range d.Accounts {
		if err := s.prepare(&updates[i], &d.Accounts[i]); err != nil {
			return fmt.Errorf("account %s: %w", d.Accounts[i].Address, err)
		}
	}
	if err := s.writeSlots(updates); err != nil {
		return err
	}
	for i := range updates {
		if err := s.writeAccount(&updates[i]); err != nil {
			return fmt.Errorf("account %s: %w", updates[i].diff.Address, err)
		}
	}
	return nil
}

// openAccounts opens the account trie unless it is open.
func (s *State) openAccounts() (err error) {
	if s.accounts == nil {
		if s.accounts, err = trie.New(trie.StateTrieID(s.root), s.round); err != nil {
			return fmt.Errorf("open account trie: %w", err)
		}
	}
	return nil
}

// prepare reads the account from the account trie, puts the change into it and
// decides which storage trie its slots go to.
func (s *State) prepare(u *update, d *chain.AccountDiff) error {
	u.diff = d
	u.owner = crypto.Keccak256Hash(d.Address[:])
	before, err := s.account(u.owner)
	if err != nil {
		return err
	}
	if gone := d.Changed && !d.Account.Exists; gone || d.Wiped {
		s.dropStorage(u.owner, before)
		if gone {
			return nil
		}
	}
	switch {
	case before != nil:
		u.account = before
	case d.Changed:
		u.account = types.NewEmptyStateAccount()
	default:
		return errors.New("slots of an account that does not exist")
	}
	if d.Changed {
		u.account.Nonce = d.Account.Nonce
		u.account.Balance = d.Account.Balance.Clone()
		u.account.CodeHash = codeHash(&d.Account)
	}
	if d.Wiped {
		u.account.Root = types.EmptyRootHash
	}
	return nil
}

// codeHash is how a trie writes the code of an account.
func codeHash(a *chain.Account) []byte {
	if a.CodeHash == (chain.Hash{}) {
		return types.EmptyCodeHash[:]
	}
	return a.CodeHash[:]
}

// account returns what the account trie holds, nil where there is no account.
func (s *State) account(owner chain.Hash) (*types.StateAccount, error) {
	blob, err := s.accounts.Get(owner[:])
	if err != nil || len(blob) == 0 {
		return nil, err
	}
	account := new(types.StateAccount)
	if err := rlp.DecodeBytes(blob, account); err != nil {
		return nil, fmt.Errorf("%w: %w", chain.ErrCorrupt, err)
	}
	return account, nil
}

// dropStorage voids what an account holds in storage, if anything.
func (s *State) dropStorage(owner chain.Hash, before *types.StateAccount) {
	delete(s.storages, owner)
	if before != nil && before.Root != types.EmptyRootHash {
		s.wiped[owner] = true
	}
}

// writeSlots brings the storage tries up to date and hashes them. They are
// independent of each other, so they share the cores.
func (s *State) writeSlots(updates []update) error {
	var busy []*update
	for i := range updates {
		u := &updates[i]
		if len(u.diff.Slots) == 0 || u.account == nil {
			continue
		}
		u.storage = s.storages[u.owner]
		busy = append(busy, u)
	}
	errs := make([]error, len(busy))
	parallel.Do(len(busy), func(i int) { errs[i] = s.writeStorage(busy[i]) })
	for i, u := range busy {
		if errs[i] != nil {
			return fmt.Errorf("storage of %s: %w", u.diff.Address, errs[i])
		}
		s.storages[u.owner] = u.storage
	}
	return nil
}

// writeStorage touches nothing of s that other accounts share, but the source.
func (s *State) writeStorage(u *update) (err error) {
	if u.storage == nil {
		id := trie.StorageTrieID(s.root, u.owner, u.account.Root)
		if u.storage, err = trie.New(id, s.round); err != nil {
			return err
		}
	}
	for _, change := range u.diff.Slots {
		key := crypto.Keccak256(change.Slot[:])
		if change.Value == (chain.Value{}) {
			err = u.storage.Delete(key)
		} else {
			err = u.storage.Update(key, encodeSlot(change.Value))
		}
		if err != nil {
			return err
		}
	}
	u.account.Root = u.storage.Hash()
	return nil
}

// encodeSlot is the RLP of a value that is not zero, without leading zeros.
func encodeSlot(v chain.Value) []byte {
	trimmed := bytes.TrimLeft(v[:], "\x00")
	if len(trimmed) == 1 && trimmed[0] < 0x80 {
		return trimmed
	}
	return append([]byte{0x80 + byte(len(trimmed))}, trimmed...)
}

func (s *State) writeAccount(u *update) error {
	if u.account == nil {
		return s.accounts.Delete(u.owner[:])
	}
	blob, err := rlp.EncodeToBytes(u.account)
	if err != nil {
		return err
	}
	return s.accounts.Update(u.owner[:], blob)
}
