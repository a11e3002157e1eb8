// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"glimpse/chain"
)

// Prune forgets the state of the blocks before oldest. Headers, bodies and
// receipts stay. Each block is a batch of its own that leaves a whole store with the
// mark advanced, so a crash only leaves work for the next call; Readers see the
// result when all is done. It does nothing where oldest is not ahead of the
// mark. The error is a *chain.Miss where it is above the head.
//
// The work is in proportion to what the pruned blocks changed, and to the
// storage of the accounts they wiped.
func (db *DB) Prune(oldest chain.Number) error {
	db.writing.Lock()
	defer db.writing.Unlock()
	if err := db.prune(oldest); err != nil {
		return fmt.Errorf("prune to %d: %w", oldest, err)
	}
	return nil
}

func (db *DB) prune(oldest chain.Number) error {
	r, c, err := db.begin()
	if err != nil {
		return err
	}
	defer c.close()
	h := r.heads
	if oldest > h.head.Number {
		return r.miss(chain.Future)
	}
	// All blocks are read as the store was before the first: of a key's
	// versions only the newest before each block is looked for, and that one
	// no earlier step has deleted.
	for h.oldest < oldest {
		next := h.oldest + 1
		if err := c.forget(r, next); err != nil {
			return fmt.Errorf("block %d: %w", next, err)
		}
		h.oldest = next
		c.setHeads(h)
		if err := db.applyBatch(c, pebble.NoSync); err != nil {
			return err
		}
		c.batch.Reset()
	}
	if h.oldest != r.heads.oldest {
		db.publish(h)
	}
	return nil
}

// forget makes n the oldest block (A2): what its changes hide, and what of
// them is absence, goes. In a sparse store absence stays (A6).
func (c *changes) forget(r *Reader, n chain.Number) error {
	var d *chain.Diff
	err := r.read(func(cur *cursor) (err error) {
		if d, _, err = cur.bareDiff(n); err != nil {
			return err
		}
		for i := range d.Accounts {
			if err := c.forgetBefore(cur, &d.Accounts[i], n); err != nil {
				return err
			}
			if err := c.forgetMark(cur, &d.Accounts[i], n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range d.Accounts {
		if a := &d.Accounts[i]; a.Wiped {
			if err := c.forgetWiped(r, a.Address, n); err != nil {
				return err
			}
		}
	}
	c.delete(appendNumberKey(nil, spaceJournal, n-1))
	return nil
}

// forgetBefore deletes the versions that those of block n hide.
func (c *changes) forgetBefore(cur *cursor, a *chain.AccountDiff, n chain.Number) error {
	if a.Changed {
		cur.key = appendAccountKey(cur.key[:0], a.Address, n-1)
		if err := c.deleteNewest(cur); err != nil {
			return err
		}
		if !a.Account.Exists && !c.sparse {
			c.deleteAccount(a.Address, n)
		}
	}
	for _, s := range a.Slots {
		cur.key = appendSlotKey(cur.key[:0], a.Address, s.Slot, n-1)
		if err := c.deleteNewest(cur); err != nil {
			return err
		}
		if s.Value == (chain.Value{}) && !c.sparse {
			c.deleteSlot(a.Address, s.Slot, n)
		}
	}
	return nil
}

// deleteNewest deletes the version that cur.key falls to.
func (c *changes) deleteNewest(cur *cursor) error {
	found, err := cur.seekIn()
	if found {
		c.delete(cur.iter.Key())
	}
	return err
}

// forgetMark deletes the mark of a wipe at n. A sparse store needs it to know
// that storage of before is void, and forgets the mark before it instead.
func (c *changes) forgetMark(cur *cursor, a *chain.AccountDiff, n chain.Number) error {
	switch {
	case !a.Wiped:
		return nil
	case c.sparse:
		cur.key = appendWipeKey(cur.key[:0], a.Address, n-1)
		return c.deleteNewest(cur)
	}
	c.deleteWipe(a.Address, n)
	return nil
}

// forgetWiped deletes the storage that a wipe at n made void.
func (c *changes) forgetWiped(r *Reader, a chain.Address, n chain.Number) error {
	stem := appendAccountStem(nil, spaceSlot, a)
	return r.eachNewest(stem, nil, n-1, func(key, _ []byte) (more bool, err error) {
		c.delete(key)
		return true, nil
	})
}
