// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"bytes"
	"slices"

	"github.com/ethereum/go-ethereum/crypto"
)

// A Diff is what one block, or one flashblock, changed. It is what every source
// produces, what the archive stores and what replicas receive; nothing behind
// it knows how it was made.
//
// A Diff holds values after the change, and only for what is different from
// before. Its parts are sorted and without duplicates, so that equal changes
// are equal Diffs with equal encodings.
type Diff struct {
	Accounts []AccountDiff // ascending by Address
	Codes    []Code        // ascending by Hash: bytecode that accounts of this Diff refer to
}

// An AccountDiff is what changed at one address.
type AccountDiff struct {
	Address Address

	// Changed says that Account is the account from now on. Otherwise only
	// slots changed, and Account is the zero Account.
	Changed bool
	Account Account

	// Wiped says that all storage from before is void: the account was
	// destroyed, and perhaps created again. Slots then holds what was written
	// after that, without zeros.
	Wiped bool
	Slots []SlotDiff // ascending by Slot
}

// A SlotDiff is the new value of one slot; zero means that it was cleared.
type SlotDiff struct {
	Slot  Slot
	Value Value
}

// A Code is bytecode under its keccak hash.
type Code struct {
	Hash  Hash
	Bytes []byte
}

// NewCode returns code with its hash computed. The slice is kept.
func NewCode(code []byte) Code {
	return Code{Hash: crypto.Keccak256Hash(code), Bytes: code}
}

// Sort puts the parts of d in their canonical order. Producers that collect
// into maps call it once at the end.
func (d *Diff) Sort() {
	slices.SortFunc(d.Accounts, func(a, b AccountDiff) int { return bytes.Compare(a.Address[:], b.Address[:]) })
	for i := range d.Accounts {
		slices.SortFunc(d.Accounts[i].Slots, func(a, b SlotDiff) int { return bytes.Compare(a.Slot[:], b.Slot[:]) })
	}
	slices.SortFunc(d.Codes, func(a, b Code) int { return bytes.Compare(a.Hash[:], b.Hash[:]) })
}

// Empty reports whether nothing changed.
func (d *Diff) Empty() bool { return len(d.Accounts) == 0 }
