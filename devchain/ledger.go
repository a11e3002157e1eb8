// SPDX-License-Identifier: Apache-2.0

package devchain

import "glimpse/chain"

// A ledger is the accounts as the block being built has left them, without their
// storage: what is needed to tell whether a transaction can be executed before
// it is.
type ledger struct {
	base    chain.View
	changed map[chain.Address]chain.Account
	codes   map[chain.Hash][]byte // of accounts in changed
}

func newLedger(base chain.View) *ledger {
	return &ledger{base, make(map[chain.Address]chain.Account), make(map[chain.Hash][]byte)}
}

func (l *ledger) add(d *chain.Diff) {
	for i := range d.Accounts {
		if a := &d.Accounts[i]; a.Changed {
			l.changed[a.Address] = a.Account
		}
	}
	for _, c := range d.Codes {
		l.codes[c.Hash] = c.Bytes
	}
}

func (l *ledger) account(addr chain.Address) (chain.Account, error) {
	if a, ok := l.changed[addr]; ok {
		return a, nil
	}
	return l.base.Account(addr)
}

func (l *ledger) code(hash chain.Hash) ([]byte, error) {
	if code, ok := l.codes[hash]; ok {
		return code, nil
	}
	return l.base.Code(hash)
}
