// SPDX-License-Identifier: Apache-2.0

package node

import (
	"glimpse/archive"
	"glimpse/chain"
	"glimpse/head"
)

// state lets head read an archive.Reader.
type state struct{ *archive.Reader }

var _ head.State = state{}

func (s state) Account(n chain.Number, a chain.Address) (chain.Account, error) {
	view, err := s.At(n)
	if err != nil {
		return chain.Account{}, err
	}
	return view.Account(a)
}

func (s state) Slot(n chain.Number, a chain.Address, k chain.Slot) (chain.Value, error) {
	view, err := s.At(n)
	if err != nil {
		return chain.Value{}, err
	}
	return view.Slot(a, k)
}

// Code needs no block: bytecode is stored once, under its hash.
func (s state) Code(h chain.Hash) ([]byte, error) {
	view, err := s.At(s.Head().Number)
	if err != nil {
		return nil, err
	}
	return view.Code(h)
}
