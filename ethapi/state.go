// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"glimpse/chain"
)

func getStorageAt(s *session, dst []byte, args *arguments) ([]byte, error) {
	addr, slot, sel := args.address(), args.position(), args.block()
	if err := args.done(); err != nil {
		return nil, err
	}
	view, err := s.View(sel)
	if err != nil {
		return nil, err
	}
	value, err := view.Slot(addr, slot)
	if err != nil {
		return nil, err
	}
	return appendData(dst, value[:]), nil
}

func getCode(s *session, dst []byte, args *arguments) ([]byte, error) {
	view, account, err := s.account(args)
	if err != nil {
		return nil, err
	}
	code, err := view.Code(account.CodeHash)
	if err != nil {
		return nil, err
	}
	return appendData(dst, code), nil
}

func getBalance(s *session, dst []byte, args *arguments) ([]byte, error) {
	_, account, err := s.account(args)
	if err != nil {
		return nil, err
	}
	return appendBigQuantity(dst, &account.Balance), nil
}

func getTransactionCount(s *session, dst []byte, args *arguments) ([]byte, error) {
	_, account, err := s.account(args)
	if err != nil {
		return nil, err
	}
	return appendQuantity(dst, account.Nonce), nil
}

// account reads what the parameters address and block name.
func (s *session) account(args *arguments) (view chain.View, account chain.Account, err error) {
	addr, sel := args.address(), args.block()
	if err = args.done(); err != nil {
		return nil, account, err
	}
	if view, err = s.View(sel); err != nil {
		return nil, account, err
	}
	account, err = view.Account(addr)
	return view, account, err
}
