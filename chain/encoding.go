// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/crypto"
)

// The encoding of a Diff, drawn in docs/formats.md:
//
//	version(1) #accounts account… #codes code…
//	account:  address(20) flags(1) [nonce balance codehash(32)] #slots len(1)… slot…
//	slot:     slot(32) value(len)
//	code:     hash(32) len bytes(len)
//
// Counts, lengths and the nonce are minimal uvarints; balance and value are
// without leading zeros, the balance after its length. The lengths of all values
// of an account come first, so that slot and value are side by side as they often
// are in a transaction, and a journal packed beside its block copies both at once.
// Every Diff has exactly one encoding, and DecodeDiff accepts nothing else, so
// encodings may be compared and hashed in place of Diffs.
const diffVersion = 2

const (
	flagChanged  = 1 << iota // account follows, or it is gone where flagExists is missing
	flagExists               // nonce and balance follow
	flagCode                 // code hash follows
	flagWiped                // storage from before is void
	flagsDefined = flagChanged | flagExists | flagCode | flagWiped
)

// ErrDiff is wrapped by every error of DecodeDiff.
var ErrDiff = errors.New("malformed diff")

// AppendDiff appends the encoding of d, which must be in canonical order.
func AppendDiff(dst []byte, d *Diff) []byte {
	dst = append(dst, diffVersion)
	dst = binary.AppendUvarint(dst, uint64(len(d.Accounts)))
	for i := range d.Accounts {
		dst = appendAccountDiff(dst, &d.Accounts[i])
	}
	dst = binary.AppendUvarint(dst, uint64(len(d.Codes)))
	for _, c := range d.Codes {
		dst = append(dst, c.Hash[:]...)
		dst = binary.AppendUvarint(dst, uint64(len(c.Bytes)))
		dst = append(dst, c.Bytes...)
	}
	return dst
}

func appendAccountDiff(dst []byte, a *AccountDiff) []byte {
	dst = append(dst, a.Address[:]...)
	dst = append(dst, a.flags())
	if a.Changed && a.Account.Exists {
		dst = binary.AppendUvarint(dst, a.Account.Nonce)
		balance := a.Account.Balance.Bytes32()
		trimmed := trim(balance[:])
		dst = append(append(dst, byte(len(trimmed))), trimmed...)
		if a.Account.CodeHash != (Hash{}) {
			dst = append(dst, a.Account.CodeHash[:]...)
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(a.Slots)))
	for i := range a.Slots {
		dst = append(dst, byte(len(trim(a.Slots[i].Value[:]))))
	}
	for i := range a.Slots {
		dst = append(dst, a.Slots[i].Slot[:]...)
		dst = append(dst, trim(a.Slots[i].Value[:])...)
	}
	return dst
}

func (a *AccountDiff) flags() (f byte) {
	if a.Changed {
		f |= flagChanged
		if a.Account.Exists {
			f |= flagExists
			if a.Account.CodeHash != (Hash{}) {
				f |= flagCode
			}
		}
	}
	if a.Wiped {
		f |= flagWiped
	}
	return f
}

func trim(v []byte) []byte { return bytes.TrimLeft(v, "\x00") }

// DecodeDiff reads one encoded Diff, which must be all of data and in the one
// form that AppendDiff writes. The result shares no memory with data.
func DecodeDiff(data []byte) (*Diff, error) {
	r := diffReader{rest: data}
	d := r.diff()
	switch {
	case r.err != nil:
		return nil, r.err
	case len(r.rest) > 0:
		return nil, fmt.Errorf("%w: %d bytes after the end", ErrDiff, len(r.rest))
	}
	return d, nil
}

// A diffReader takes values off the front of rest. After the first error all
// further ones are zero, so that the reading code need not check each step.
type diffReader struct {
	rest []byte
	err  error
}

// The least that one element of each kind takes, to refuse a false count before
// looping over it.
const (
	minAccount = 20 + 1 + 1
	minSlot    = 1 + 32
	minCode    = 32 + 1 + 1
)

func (r *diffReader) diff() *Diff {
	if v := r.byte(); v != diffVersion {
		r.fail("version %d, want %d", v, diffVersion)
	}
	d := new(Diff)
	for range r.count(minAccount) {
		a := r.accountDiff()
		if r.err != nil {
			break
		}
		if n := len(d.Accounts); n > 0 && bytes.Compare(d.Accounts[n-1].Address[:], a.Address[:]) >= 0 {
			r.fail("accounts out of order at %s", a.Address)
		}
		d.Accounts = append(d.Accounts, a)
	}
	for range r.count(minCode) {
		c := r.code()
		if r.err != nil {
			break
		}
		if n := len(d.Codes); n > 0 && bytes.Compare(d.Codes[n-1].Hash[:], c.Hash[:]) >= 0 {
			r.fail("codes out of order at %s", c.Hash)
		}
		d.Codes = append(d.Codes, c)
	}
	return d
}

func (r *diffReader) accountDiff() (a AccountDiff) {
	copy(a.Address[:], r.take(len(a.Address)))
	flags := r.byte()
	a.Changed = flags&flagChanged != 0
	a.Account.Exists = flags&flagExists != 0
	a.Wiped = flags&flagWiped != 0
	if flags&^flagsDefined != 0 ||
		a.Account.Exists && !a.Changed ||
		flags&flagCode != 0 && !a.Account.Exists {
		r.fail("flags %#x of account %s", flags, a.Address)
	}
	if a.Account.Exists {
		a.Account.Nonce = r.uvarint()
		a.Account.Balance.SetBytes(r.trimmed(r.byte()))
	}
	if flags&flagCode != 0 {
		copy(a.Account.CodeHash[:], r.take(len(Hash{})))
		if a.Account.CodeHash == (Hash{}) {
			r.fail("zero code hash of account %s", a.Address)
		}
	}
	a.Slots = r.slots(a.Wiped)
	if !a.Changed && !a.Wiped && len(a.Slots) == 0 {
		r.fail("account %s without a change", a.Address)
	}
	return a
}

func (r *diffReader) slots(wiped bool) (slots []SlotDiff) {
	for _, length := range r.take(r.count(minSlot)) {
		var s SlotDiff
		copy(s.Slot[:], r.take(len(s.Slot)))
		s.Value.SetBytes(r.trimmed(length))
		if r.err != nil {
			break
		}
		if k := len(slots); k > 0 && bytes.Compare(slots[k-1].Slot[:], s.Slot[:]) >= 0 {
			r.fail("slots out of order at %s", s.Slot)
		}
		if wiped && s.Value == (Value{}) {
			r.fail("zero slot %s after a wipe", s.Slot)
		}
		slots = append(slots, s)
	}
	return slots
}

func (r *diffReader) code() (c Code) {
	copy(c.Hash[:], r.take(len(c.Hash)))
	c.Bytes = slices.Clone(r.take(r.count(1)))
	if len(c.Bytes) == 0 {
		r.fail("empty code")
	} else if crypto.Keccak256Hash(c.Bytes) != c.Hash {
		r.fail("code does not have hash %s", c.Hash)
	}
	return c
}

func (r *diffReader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *diffReader) take(n int) []byte {
	if r.err != nil {
		return nil
	}
	if n > len(r.rest) {
		r.fail("ends early")
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// count reads how many elements follow, each of at least size bytes.
func (r *diffReader) count(size int) int {
	n := r.uvarint()
	if n > uint64(len(r.rest)/size) {
		r.fail("count %d is more than fits", n)
		return 0
	}
	return int(n)
}

func (r *diffReader) uvarint() uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || n > 1 && r.rest[n-1] == 0 {
		r.fail("bad or overlong number")
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// trimmed reads a value of at most 32 bytes without leading zeros.
func (r *diffReader) trimmed(length byte) []byte {
	if length > 32 {
		r.fail("value of %d bytes", length)
		return nil
	}
	v := r.take(int(length))
	if len(v) > 0 && v[0] == 0 {
		r.fail("value with leading zero")
	}
	return v
}

func (r *diffReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrDiff, fmt.Sprintf(format, args...))
		r.rest = nil
	}
}
