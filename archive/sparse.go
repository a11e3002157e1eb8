// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"glimpse/chain"
)

// InitAt makes an empty store a sparse one: it begins with the block first,
// whatever its height, and does not know the state of that block (A6). The Diff
// of first is nil or empty, because what it changed is not known either; its
// Parent need not be anywhere.
//
// On a store that belongs to this chain already it does nothing: one that knows
// all state goes on knowing it, and a sparse one begins where it began. On one
// of another chain the error wraps ErrGenesis and names both.
func (db *DB) InitAt(id Identity, first Block) error {
	db.writing.Lock()
	defer db.writing.Unlock()
	if err := db.initAt(id, first); err != nil {
		return fmt.Errorf("init archive at block %s: %w", first.Ref, err)
	}
	return nil
}

func (db *DB) initAt(id Identity, first Block) error {
	if r := db.current.Load(); r != nil {
		return r.belongsTo(id)
	}
	if err := db.writable(); err != nil {
		return err
	}
	switch {
	case first.Number == 0 && first.Hash != id.Genesis:
		return fmt.Errorf("%w: genesis block %s, want 0 (%s)", ErrGenesis, first.Ref, id.Genesis)
	case first.Diff == nil:
		first.Diff = new(chain.Diff)
	case !first.Diff.Empty() || len(first.Diff.Codes) > 0:
		return fmt.Errorf("%w: the first block of a sparse store has changes", chain.ErrDiff)
	}
	c := db.newChanges()
	defer c.close()
	h := heads{identity: id, head: first.Ref, first: first.Number, sparse: true, oldest: first.Number}
	if err := c.addTransactions(nil, &first); err != nil {
		return err
	}
	c.set(metaKey(metaFormat), appendNumber(nil, formatSparse))
	c.set(metaKey(metaFirst), appendNumber(nil, h.first))
	c.set(metaKey(metaIdentity), appendIdentity(nil, id))
	h.digest = c.setBlock(&first, digestSeed(id))
	c.setHeads(h)
	return db.apply(c, h, pebble.Sync)
}

// unwritten returns a slot that no block up to v's wrote, in a sparse store.
func (v View) unwritten(c *cursor, a chain.Address, s chain.Slot) (chain.Value, error) {
	if v.r.db.wiped.mayHold(a) {
		if _, found, err := c.lastWipe(a, v.n); found || err != nil {
			return chain.Value{}, err
		}
	}
	value, err := v.r.originSlot(c, a, s)
	if err != chain.ErrUnknown {
		return value, err
	}
	return chain.Value{}, v.r.createdSince(c, a, v.n)
}

// createdSince reports chain.ErrUnknown unless an account did not exist at the
// first block and has code at n. It then had no storage at the first block, and
// the slots of a new contract need not be asked for one by one: a contract is
// created only where there is no storage (EIP-7610), and an account that
// delegates never was one. That it did not exist is not enough. There are a few
// accounts with storage and nothing else.
func (r *Reader) createdSince(c *cursor, a chain.Address, n chain.Number) error {
	account, found, err := c.account(a, n)
	if err != nil {
		return err
	}
	if !found || account.CodeHash == (chain.Hash{}) {
		return chain.ErrUnknown
	}
	first, err := r.originAccount(c, a)
	if err == nil && first.Exists {
		err = chain.ErrUnknown
	}
	return err
}

// knowsAllSlots reports chain.ErrUnknown where an account may have slots at n
// that are not here. Wiped is the block of its last wipe, zero where there is
// none: no wipe is in the first block.
func (r *Reader) knowsAllSlots(a chain.Address, n, wiped chain.Number) error {
	if wiped > 0 {
		return nil
	}
	return r.read(func(c *cursor) error { return r.createdSince(c, a, n) })
}

// SlotHeldUntil is for a slot that v does not know. It returns the newest block
// at whose end the slot is still as it was at the first block: nothing from the
// first to the returned one changed it, so what it is in any of them is what it
// was at the first. The block is on the chain that the Reader sees, and its hash
// says so to whoever is asked for its state.
func (v View) SlotHeldUntil(a chain.Address, s chain.Slot) (chain.Ref, error) {
	return v.heldUntil(appendSlotStem(nil, a, s), appendAccountStem(nil, spaceWipe, a))
}

// AccountHeldUntil is SlotHeldUntil for an account that v does not know.
func (v View) AccountHeldUntil(a chain.Address) (chain.Ref, error) {
	return v.heldUntil(appendAccountStem(nil, spaceAccount, a))
}

// heldUntil returns the block before the first version of any stem after v's.
// There is none up to v's own: v would know.
func (v View) heldUntil(stems ...[]byte) (chain.Ref, error) {
	head := v.r.heads.head
	until := head.Number
	for _, stem := range stems {
		if v.n == head.Number {
			break
		}
		iter, err := v.r.versions(stem, v.n, until)
		if err != nil {
			return chain.Ref{}, err
		}
		if iter.next() {
			until = iter.block - 1
		}
		if err := iter.close(); err != nil {
			return chain.Ref{}, fmt.Errorf("find the first change after block %d: %w", v.n, err)
		}
	}
	if until == head.Number {
		return head, nil
	}
	hash, err := v.r.Hash(until)
	return chain.Ref{Number: until, Hash: hash}, err
}
