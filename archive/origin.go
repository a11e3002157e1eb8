// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/ethereum/go-ethereum/crypto"

	"glimpse/chain"
)

// ErrContradiction refuses a fact that differs from one that was kept before.
var ErrContradiction = errors.New("contradicts what is known of the first block")

// KeepOrigin keeps values at the first block of a sparse store for ever, all of
// them or none. Every account with code must bring it, unless the store has it
// already. Facts that are kept already are kept once; one that differs is
// refused with ErrContradiction, because it may have been served.
//
// Readers of any age know them from then on: they never change. They become
// durable as other writes do; one that a crash loses is unknown again.
func (db *DB) KeepOrigin(f *chain.Facts) error {
	return db.change("keep state of the first block", func(r *Reader, c *changes, h *heads) error {
		if !h.sparse {
			return errors.New("all state is here already")
		}
		return r.read(func(cur *cursor) error { return c.addFacts(cur, f, h.first) })
	})
}

// addFacts adds what the cursor does not see. It sees all there is: only writers
// add facts, and the caller is the one writer.
func (c *changes) addFacts(cur *cursor, f *chain.Facts, first chain.Number) error {
	brought := make(map[chain.Hash][]byte, len(f.Codes))
	for _, code := range f.Codes {
		if len(code.Bytes) == 0 || crypto.Keccak256Hash(code.Bytes) != code.Hash {
			return fmt.Errorf("code does not have hash %s", code.Hash)
		}
		brought[code.Hash] = code.Bytes
	}
	for i := range f.Accounts {
		a := &f.Accounts[i]
		if !a.Account.Exists && a.Account != (chain.Account{}) {
			return fmt.Errorf("account %s has values but does not exist", a.Address)
		}
		if h := a.Account.CodeHash; h != (chain.Hash{}) {
			if err := c.addFirstCode(cur, chain.Code{Hash: h, Bytes: brought[h]}, first); err != nil {
				return fmt.Errorf("account %s: %w", a.Address, err)
			}
		}
		cur.key = appendAccountStem(cur.key[:0], spaceOrigin, a.Address)
		c.value = appendAccount(c.value[:0], &a.Account)
		if err := c.addFact(cur); err != nil {
			return err
		}
	}
	for i := range f.Slots {
		s := &f.Slots[i]
		cur.key = appendOriginSlotKey(cur.key[:0], s.Address, s.Slot)
		c.value = appendSlotValue(c.value[:0], s.Value)
		if err := c.addFact(cur); err != nil {
			return err
		}
	}
	return nil
}

// addFact adds c.value at the cursor's key.
func (c *changes) addFact(cur *cursor) error {
	have, found, err := cur.get()
	if err != nil {
		return err
	}
	if !found {
		c.set(cur.key, c.value)
		return nil
	}
	if !bytes.Equal(have, c.value) {
		return fmt.Errorf("%w: %s is %x, told %x", ErrContradiction, formatKey(cur.key), have, c.value)
	}
	return nil
}

// addFirstCode stores a code as one of the first block, even where a later block
// introduced it: otherwise unwinding that block would take it away.
func (c *changes) addFirstCode(cur *cursor, code chain.Code, first chain.Number) error {
	since, stored, found, err := cur.code(code.Hash)
	switch {
	case err != nil:
		return err
	case found && since <= first:
		return nil
	case found:
		code.Bytes = stored
	case len(code.Bytes) == 0:
		return fmt.Errorf("code %s is not known", code.Hash)
	}
	c.setCode(code, first)
	return nil
}

// HasCode reports whether a bytecode is in the store as it is now.
func (db *DB) HasCode(h chain.Hash) (known bool, err error) {
	r, err := db.NewReader()
	if err != nil {
		return false, err
	}
	defer r.Release()
	err = r.read(func(c *cursor) error {
		known, err = c.hasCode(h)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("look for code %s: %w", h, err)
	}
	return known, nil
}

// OriginAccount returns an account at the first block of a sparse store, as
// KeepOrigin was told. Where it was not, the error wraps chain.ErrUnknown.
func (r *Reader) OriginAccount(a chain.Address) (account chain.Account, err error) {
	err = r.read(func(c *cursor) error {
		account, err = r.originAccount(c, a)
		return err
	})
	if err != nil {
		return chain.Account{}, fmt.Errorf("read account %s at the first block: %w", a, err)
	}
	return account, nil
}

// OriginSlot returns a slot at the first block of a sparse store, as KeepOrigin
// was told. Where it was not, the error wraps chain.ErrUnknown.
func (r *Reader) OriginSlot(a chain.Address, s chain.Slot) (v chain.Value, err error) {
	err = r.read(func(c *cursor) error {
		v, err = r.originSlot(c, a, s)
		return err
	})
	if err != nil {
		return chain.Value{}, fmt.Errorf("read slot %s of %s at the first block: %w", s, a, err)
	}
	return v, nil
}

// originAccount returns an account at the first block, or chain.ErrUnknown.
func (r *Reader) originAccount(c *cursor, a chain.Address) (chain.Account, error) {
	c.key = appendAccountStem(c.key[:0], spaceOrigin, a)
	return fact(r, c, decodeAccount)
}

// originSlot returns a slot at the first block, or chain.ErrUnknown.
func (r *Reader) originSlot(c *cursor, a chain.Address, s chain.Slot) (chain.Value, error) {
	c.key = appendOriginSlotKey(c.key[:0], a, s)
	return fact(r, c, decodeSlotValue)
}

// fact returns what was kept at the cursor's key. Most was kept before the
// Reader was taken, and the cursor finds it without allocation; what was kept
// since is looked for in the store as it is now.
func fact[T any](r *Reader, c *cursor, decode func([]byte) (T, error)) (v T, err error) {
	value, found, err := c.get()
	if err == nil && !found {
		value, found, err = r.db.late(c.key)
	}
	if err == nil && !found {
		err = chain.ErrUnknown
	}
	if err != nil {
		return v, err
	}
	return decode(value)
}

// late returns a copy of a value in the store as it is now. The caller holds a
// Reader, or is opening the store: Pebble is open.
func (db *DB) late(key []byte) (value []byte, found bool, err error) {
	shared, closer, err := db.pebble.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, storeError(err)
	}
	value = slices.Clone(shared)
	err = storeError(closer.Close())
	return value, err == nil, err
}

// lateCode returns a code that KeepOrigin stored after a Reader was taken.
func (db *DB) lateCode(key []byte) (code []byte, found bool, err error) {
	value, found, err := db.late(key)
	if !found {
		return nil, false, err
	}
	_, code, err = decodeCode(value)
	return code, err == nil, err
}
