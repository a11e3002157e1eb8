// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"strconv"

	"glimpse/chain"
)

func getStateDiff(s *session, dst []byte, args *arguments) ([]byte, error) {
	sel := args.block()
	if err := args.done(); err != nil {
		return nil, err
	}
	dst, n, err := s.appendPlace(dst, sel)
	if err != nil {
		return nil, err
	}
	d, parent, err := s.diff(sel, n)
	if err != nil {
		return nil, err
	}
	dst = append(dst, `,"parentHash":`...)
	dst = appendData(dst, parent[:])
	dst = append(dst, `,"accounts":[`...)
	for i := range d.Accounts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendAccountDiff(dst, &d.Accounts[i])
	}
	dst = append(dst, `],"codes":[`...)
	for i, c := range d.Codes {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"hash":`...)
		dst = appendData(dst, c.Hash[:])
		dst = append(dst, `,"code":`...)
		dst = appendData(dst, c.Bytes)
		dst = append(dst, '}')
	}
	return append(dst, "]}"...), nil
}

// diff returns what leads to the state that sel means, and the hash of the block
// that it leads on from, zero for genesis. The sealed block of sel has height n.
func (s *session) diff(sel chain.Selector, n chain.Number) (d *chain.Diff, parent chain.Hash, err error) {
	if sel.IsPending() {
		if d, ok := s.PendingDiff(); ok {
			return d, s.Latest().Hash, nil
		}
	}
	if d, err = s.Diff(n); err != nil {
		return nil, chain.Hash{}, err
	}
	if n > 0 {
		parent, err = s.Hash(n - 1)
	}
	return d, parent, err
}

func appendAccountDiff(dst []byte, a *chain.AccountDiff) []byte {
	dst = append(dst, `{"address":`...)
	dst = appendData(dst, a.Address[:])
	if a.Changed {
		dst = append(dst, `,"account":`...)
		dst = appendAccount(dst, &a.Account)
	}
	dst = append(dst, `,"wiped":`...)
	dst = strconv.AppendBool(dst, a.Wiped)
	dst = append(dst, `,"slots":`...)
	dst = appendSlots(dst, a.Slots)
	return append(dst, '}')
}

// appendAccount appends an account, null where it does not exist.
func appendAccount(dst []byte, a *chain.Account) []byte {
	if !a.Exists {
		return appendNull(dst)
	}
	dst = append(dst, `{"nonce":`...)
	dst = appendQuantity(dst, a.Nonce)
	dst = append(dst, `,"balance":`...)
	dst = appendBigQuantity(dst, &a.Balance)
	dst = appendCodeHash(dst, a.CodeHash)
	return append(dst, '}')
}
