// SPDX-License-Identifier: Apache-2.0

package memview

import (
	"errors"

	"glimpse/chain"
)

// ErrInjected is the error of a read that was made to fail.
var ErrInjected = errors.New("injected")

// A Faulty view fails one read and answers all others, which is harder to notice
// than one that fails for good. One goroutine may use it.
type Faulty struct {
	View   chain.View
	FailAt int // which read fails, from 1 on; 0 for none
	Reads  int // how many there were
}

// Read counts a read, and is ErrInjected when it is the one that fails.
func (f *Faulty) Read() error {
	f.Reads++
	if f.Reads == f.FailAt {
		return ErrInjected
	}
	return nil
}

// Account implements chain.View.
func (f *Faulty) Account(addr chain.Address) (chain.Account, error) {
	if err := f.Read(); err != nil {
		return chain.Account{}, err
	}
	return f.View.Account(addr)
}

// Slot implements chain.View.
func (f *Faulty) Slot(addr chain.Address, slot chain.Slot) (chain.Value, error) {
	if err := f.Read(); err != nil {
		return chain.Value{}, err
	}
	return f.View.Slot(addr, slot)
}

// Code implements chain.View.
func (f *Faulty) Code(hash chain.Hash) ([]byte, error) {
	if err := f.Read(); err != nil {
		return nil, err
	}
	return f.View.Code(hash)
}
