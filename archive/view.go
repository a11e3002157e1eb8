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
	c, err := v.r.take()
	if err != nil {
		return chain.Value{}, err
	}
	value, err := v.slot(c, a, s)
	v.r.give(c, err)
	if err != nil {
		return chain.Value{}, fmt.Errorf("read slot %s of %s at %d: %w", s, a, v.n, err)
	}
	return value, nil
}

func (v View) slot(c *cursor, a chain.Address, s chain.Slot) (chain.Value, error) {
	written, value, found, err := c.slot(a, s, v.n)
	if !found && err == nil && v.r.heads.sparse {
		return v.unwritten(c, a, s)
	}
	if err != nil || value == (chain.Value{}) || !v.r.db.wiped.mayHold(a) {
		return value, err
	}
	wiped, found, err := c.lastWipe(a, v.n)
	if err != nil || found && written < wiped {
		return chain.Value{}, err
	}
	return value, nil
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
