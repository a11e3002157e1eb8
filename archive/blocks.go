// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"
	"slices"

	"glimpse/chain"
)

// Number returns the height of the block with hash h and whether it is on the
// canonical chain. A hash that this store never had is a *chain.Miss; one that
// was unwound is known and not canonical.
func (r *Reader) Number(h chain.Hash) (n chain.Number, canonical bool, err error) {
	err = r.read(func(c *cursor) error {
		c.key = appendHashKey(c.key[:0], spaceHash, h)
		value, found, err := c.get()
		if err == nil && !found {
			return r.miss(chain.UnknownHash)
		}
		if err != nil {
			return err
		}
		if n, err = decodeNumber(value); err != nil || n > r.heads.head.Number {
			return err
		}
		b, err := c.block(n)
		canonical = b.hash == h
		return err
	})
	if err != nil {
		return 0, false, fmt.Errorf("find block %s: %w", h, err)
	}
	return n, canonical, nil
}

// Hash returns the hash of the canonical block n. After the head and before the
// first block the error is a *chain.Miss.
func (r *Reader) Hash(n chain.Number) (h chain.Hash, err error) {
	err = r.block(n, func(b storedBlock) { h = b.hash })
	return h, err
}

// Header and Body return a copy of what Commit was given for block n. After
// the head and before the first block the error is a *chain.Miss; pruning keeps
// both.
func (r *Reader) Header(n chain.Number) (header []byte, err error) {
	err = r.block(n, func(b storedBlock) { header = slices.Clone(b.header) })
	return header, err
}

// Body is described at Header.
func (r *Reader) Body(n chain.Number) (body []byte, err error) {
	err = r.block(n, func(b storedBlock) { body = slices.Clone(b.body) })
	return body, err
}

func (r *Reader) block(n chain.Number, use func(storedBlock)) error {
	if err := r.has(n); err != nil {
		return err
	}
	err := r.read(func(c *cursor) error {
		b, err := c.block(n)
		if err == nil {
			use(b)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("read block %d: %w", n, err)
	}
	return nil
}

// has explains a block that is not here (P8).
func (r *Reader) has(n chain.Number) error {
	switch {
	case n > r.heads.head.Number:
		return r.miss(chain.Future)
	case n < r.heads.first:
		return r.miss(chain.Pruned)
	}
	return nil
}

// Diff returns what block n changed. The error is a *chain.Miss where n has no
// state here, and wraps chain.ErrUnknown for the first block of a sparse store.
// The caller owns the result.
func (r *Reader) Diff(n chain.Number) (d *chain.Diff, err error) {
	if err := r.within(n); err != nil {
		return nil, err
	}
	err = r.read(func(c *cursor) error {
		if r.heads.sparse && n == r.heads.first {
			return chain.ErrUnknown
		}
		d, err = c.diff(n)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read diff of %d: %w", n, err)
	}
	return d, nil
}

// Receipts returns a copy of what Commit was given as the receipts of block n.
// After the head and before the first block the error is a *chain.Miss; pruning
// keeps them.
func (r *Reader) Receipts(n chain.Number) (receipts []byte, err error) {
	if err := r.has(n); err != nil {
		return nil, err
	}
	err = r.read(func(c *cursor) error {
		stored, err := c.receipts(n)
		receipts = slices.Clone(stored.receipts)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read receipts of %d: %w", n, err)
	}
	return receipts, nil
}

// Transactions returns the hashes that Commit was given for block n, which are
// none where it was not told. The errors are those of Receipts.
func (r *Reader) Transactions(n chain.Number) (hashes []chain.Hash, err error) {
	if err := r.has(n); err != nil {
		return nil, err
	}
	err = r.read(func(c *cursor) error {
		stored, err := c.receipts(n)
		hashes = make([]chain.Hash, stored.len())
		for i := range hashes {
			hashes[i] = stored.hash(i)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read transactions of %d: %w", n, err)
	}
	return hashes, nil
}

// Transaction returns the block of a transaction and its place in it; ok is
// false where no block of the canonical chain has it.
func (r *Reader) Transaction(h chain.Hash) (n chain.Number, index int, ok bool, err error) {
	err = r.read(func(c *cursor) error {
		n, index, ok, err = c.transaction(h)
		return err
	})
	if err != nil {
		return 0, 0, false, fmt.Errorf("find transaction %s: %w", h, err)
	}
	return n, index, ok, nil
}

// Side returns a copy of the side data under key; ok is false where there is
// none.
func (r *Reader) Side(key []byte) (value []byte, ok bool, err error) {
	err = r.read(func(c *cursor) error {
		c.key = appendSideKey(c.key[:0], key)
		stored, found, err := c.get()
		value, ok = slices.Clone(stored), found
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("read side data %x: %w", key, err)
	}
	return value, ok, nil
}
