// SPDX-License-Identifier: Apache-2.0

package chain

// A SlotVersion is a value of a slot and the block from which it had it.
type SlotVersion struct {
	Block Number
	Value Value
}

// A CodeVersion is the hash of an account's code, zero for none, and the block
// from which it had it.
type CodeVersion struct {
	Block Number
	Hash  Hash
}
