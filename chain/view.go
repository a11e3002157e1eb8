// SPDX-License-Identifier: Apache-2.0

package chain

import "github.com/holiman/uint256"

// An Account is what the state holds of one address beside its storage. The
// zero Account is one that does not exist.
type Account struct {
	Exists  bool
	Nonce   uint64
	Balance uint256.Int

	// CodeHash is the keccak hash of the code, zero where there is none.
	CodeHash Hash
}

// A View is the state as of the end of one block, or of one flashblock. It
// never changes: two reads of the same slot through one View return the same
// value, whatever the node does meanwhile.
//
// Absence is a value, not an error (P2): an account that does not exist is the
// zero Account, a slot never written is the zero Value. An error means that
// the answer is not known.
//
// A View is safe for concurrent use.
type View interface {
	Account(Address) (Account, error)
	Slot(Address, Slot) (Value, error)

	// Code returns the bytecode with a hash that was read from an Account. The
	// slice is shared and must not be modified. The zero hash gives no code; a
	// hash that no account has is an error.
	Code(Hash) ([]byte, error)
}
