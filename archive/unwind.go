// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"

	"glimpse/chain"
)

// Unwind takes the blocks above to away and makes to the head. Tags above it
// are forgotten, the hashes of the blocks taken away are not. Side is written
// in the same step. All of it is one batch (P6), so its memory is in proportion
// to what the blocks changed.
//
// The error is a *chain.Miss where to has no state here.
func (db *DB) Unwind(to chain.Number, side []SideWrite) error {
	return db.change(fmt.Sprintf("unwind to %d", to), func(r *Reader, c *changes, h *heads) error {
		if err := r.within(to); err != nil {
			return err
		}
		hash, err := r.Hash(to)
		if err != nil {
			return err
		}
		for n := h.head.Number; n > to; n-- {
			if err := r.read(func(cur *cursor) error { return c.undo(cur, n) }); err != nil {
				return fmt.Errorf("block %d: %w", n, err)
			}
		}
		err = r.read(func(cur *cursor) error {
			h.digest, err = cur.digest(to)
			return err
		})
		if err != nil {
			return fmt.Errorf("block %d: %w", to, err)
		}
		h.head = chain.Ref{Number: to, Hash: hash}
		h.branch++
		h.safe, h.finalized = h.safe.upTo(to), h.finalized.upTo(to)
		c.setHeads(*h)
		c.writeSide(side)
		return nil
	})
}

// undo deletes exactly what the commit of block n wrote, as its journal tells.
func (c *changes) undo(cur *cursor, n chain.Number) error {
	d, codes, err := cur.bareDiff(n)
	if err != nil {
		return err
	}
	for i := range d.Accounts {
		a := &d.Accounts[i]
		if a.Changed {
			c.deleteAccount(a.Address, n)
		}
		if a.Wiped {
			c.deleteWipe(a.Address, n)
		}
		for _, s := range a.Slots {
			c.deleteSlot(a.Address, s.Slot, n)
		}
	}
	for _, h := range codes {
		first, _, found, err := cur.code(h)
		if err != nil {
			return err
		}
		if found && first == n {
			c.delete(appendHashKey(nil, spaceCode, h))
		}
	}
	if err := c.undoTransactions(cur, n); err != nil {
		return err
	}
	c.delete(appendNumberKey(nil, spaceBlock, n))
	c.delete(appendNumberKey(nil, spaceJournal, n))
	c.delete(appendNumberKey(nil, spaceDigest, n))
	return nil
}
