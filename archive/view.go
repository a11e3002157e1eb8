// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"

	"glimpse/chain"
)

// A View is the state at the end of one block. It is valid as long as the
// Reader it came from is held. A slot or an account is one seek, without
// allocation; View is small and copied freely.
//
// In a sparse store an error wraps chain.ErrUnknown where no block up to this
// one wrote what was asked for and KeepOrigin was not told of it. When it has
// been, the same View knows.
type View struct {
	r *Reader
	n chain.Number
}

var _ chain.View = View{}

// At returns the state of block n. Where n is after the head or before the
// oldest block, the error is a *chain.Miss.
func (r *Reader) At(n chain.Number) (View, error) {
	if err := r.within(n); err != nil {
		return View{}, err
	}
	return View{r, n}, nil
}

// Number returns the block that v is the state of.
func (v View) Number() chain.Number { return v.n }

// Account implements chain.View.
func (v View) Account(a chain.Address) (chain.Account, error) {
	c, err := v.r.take()
	if err != nil {
		return chain.Account{}, err
	}
	account, found, err := c.account(a, v.n)
	if !found && err == nil && v.r.heads.sparse {
		account, err = v.r.originAccount(c, a)
	}
	v.r.give(c, err)
	if err != nil {
		return chain.Account{}, fmt.Errorf("read account %s at %d: %w", a, v.n, err)
	}
	return account, nil
}

// Slot implements chain.View.
func (v View) Slot(a chain.Address, s chain.Slot) (chain.Value, error) {
	known := v.r.db.known
	key := known.key(a, s)
	if value, ok := known.find(&key, v.r.heads.branch, v.n); ok {
		return value, nil
	}
	c, err := v.r.take()
	if err != nil {
		return chain.Value{}, err
	}
	from, value, found, err := v.slot(c, a, s)
	if !found && err == nil && v.r.heads.sparse {
		value, err = v.unwritten(c, a, s)
	} else if err == nil {
		known.add(&key, v.r.heads.branch, from, v.n, value)
	}
	v.r.give(c, err)
	if err != nil {
		return chain.Value{}, fmt.Errorf("read slot %s of %s at %d: %w", s, a, v.n, err)
	}
	return value, nil
}

// slot returns the value of a slot and a block from which on it is that. A slot
// without a version up to this block is zero, and not found: zero since the oldest
// block, because pruning drops what was there before.
func (v View) slot(c *cursor, a chain.Address, s chain.Slot) (from chain.Number, value chain.Value, found bool, err error) {
	from, value, found, err = c.slot(a, s, v.n)
	switch {
	case err != nil:
		return 0, chain.Value{}, false, err
	case !found:
		return v.r.heads.oldest, chain.Value{}, false, nil
	case value == chain.Value{} || !v.r.db.wiped.mayHold(a):
		return from, value, true, nil
	}
	wiped, after, err := c.lastWipe(a, v.n)
	if err != nil || after && from < wiped {
		return wiped, chain.Value{}, true, err
	}
	return from, value, true, nil
}

// Code implements chain.View. Codes are kept in a cache that all Readers share:
// what a hash stands for never changes.
func (v View) Code(h chain.Hash) ([]byte, error) {
	if h == (chain.Hash{}) {
		return nil, nil
	}
	if code, ok := v.r.db.codes.Get(h); ok {
		return code, nil
	}
	code, err := v.r.code(h)
	if err != nil {
		return nil, fmt.Errorf("read code %s: %w", h, err)
	}
	v.r.db.codes.Add(h, code)
	return code, nil
}

func (r *Reader) code(h chain.Hash) (code []byte, err error) {
	err = r.read(func(c *cursor) error {
		_, stored, found, err := c.code(h)
		if err == nil && !found && r.heads.sparse {
			stored, found, err = r.db.lateCode(c.key)
		}
		if err == nil && !found {
			return missing(c.key)
		}
		code = stored
		return err
	})
	return code, err
}
