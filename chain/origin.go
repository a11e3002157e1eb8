// SPDX-License-Identifier: Apache-2.0

package chain

import "errors"

// ErrUnknown is the answer about state that nobody has told this node yet: no
// block since its first one wrote it, and what it was at that block has not been
// read. It is neither zero nor damage (P2); who can read the state elsewhere does
// that and asks again.
var ErrUnknown = errors.New("state is not known here")

// Facts are values at the end of one block, read from elsewhere. In contrast to
// a Diff they say nothing about what changed, and absence is among them: a zero
// slot or an account that does not exist is known to be so.
type Facts struct {
	Accounts []AccountFact
	Slots    []SlotFact
	Codes    []Code // bytecode that accounts of these Facts refer to
}

// An AccountFact is what the account of an address is.
type AccountFact struct {
	Address Address
	Account Account
}

// A SlotFact is what a slot of an account holds.
type SlotFact struct {
	Address Address
	Slot    Slot
	Value   Value
}
