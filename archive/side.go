// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"glimpse/chain"
)

// A SideWrite changes side data: values that belong to the newest block alone
// and mean nothing to the archive, such as the nodes of a state trie. Writes
// apply in order.
type SideWrite struct {
	Key []byte

	// Value is the new value; nil deletes the key.
	Value []byte

	// Prefix deletes every key that begins with Key; Value is then not used.
	Prefix bool
}

func (c *changes) writeSide(side []SideWrite) {
	for _, w := range side {
		c.key = appendSideKey(c.key[:0], w.Key)
		switch {
		case w.Prefix:
			c.deletePrefix(c.key)
		case w.Value == nil:
			c.delete(c.key)
		default:
			c.set(c.key, w.Value)
		}
	}
}

// WriteSide changes side data between two blocks, all of it or nothing.
func (db *DB) WriteSide(side []SideWrite) error {
	return db.change("write side data", func(_ *Reader, c *changes, _ *heads) error {
		c.writeSide(side)
		return nil
	})
}

// SetTags sets the safe and the finalized block. Nil means that none is known.
// A block that is not on the canonical chain is refused with a *chain.Miss; one
// before the first block of a sparse store is believed.
func (db *DB) SetTags(safe, finalized *chain.Ref) error {
	return db.change("set tags", func(r *Reader, c *changes, h *heads) (err error) {
		if h.safe, err = r.tag(safe); err != nil {
			return fmt.Errorf("safe: %w", err)
		}
		if h.finalized, err = r.tag(finalized); err != nil {
			return fmt.Errorf("finalized: %w", err)
		}
		c.setHeads(*h)
		return nil
	})
}

func (r *Reader) tag(ref *chain.Ref) (tag, error) {
	if ref == nil {
		return tag{}, nil
	}
	if ref.Number < r.heads.first {
		return tag{*ref, true}, nil // only the caller can know
	}
	h, err := r.Hash(ref.Number)
	if err != nil {
		return tag{}, err
	}
	if h != ref.Hash {
		return tag{}, fmt.Errorf("block %s: %w", ref, r.miss(chain.NotCanonical))
	}
	return tag{*ref, true}, nil
}

// change runs one write that need not be durable at once.
func (db *DB) change(doing string, fill func(*Reader, *changes, *heads) error) error {
	db.writing.Lock()
	defer db.writing.Unlock()
	r, c, err := db.begin()
	if err == nil {
		defer c.close()
		h := r.heads
		if err = fill(r, c, &h); err == nil {
			err = db.apply(c, h, pebble.NoSync)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}
