// SPDX-License-Identifier: Apache-2.0

package watch

import "glimpse/chain"

// A Tag is which of a slot's two current values a Change is about.
type Tag string

// The tags, as callers write them in a block parameter.
const (
	Latest  Tag = "latest"
	Pending Tag = "pending"
)

// A Level is how firm a value is.
type Level string

// The levels.
const (
	// Preconfirmed is a value that was promised and not sealed.
	Preconfirmed Level = "preconfirmed"

	// Sealed is a value that a block which is new wrote.
	Sealed Level = "sealed"

	// Revoked is a value that shows again because what hid it was taken back: a
	// promise that was not kept, or a block that a reorg removed.
	Revoked Level = "revoked"
)

// A Change is a slot that shows another value than before. Whoever keeps
// state[tag][slot] = value for every Change has what the node answers.
type Change struct {
	Slot  chain.Slot
	Value chain.Value
	Tag   Tag
	Level Level

	// Block is where the value comes from. Preconfirmed: the block that is
	// promised, up to the flashblock Index, without a hash. Sealed: the newest of
	// the new blocks that wrote it. Revoked: the sealed block at which it holds,
	// which is the common ancestor on latest, and the latest block on pending.
	Block chain.Number
	Hash  chain.Hash
	Index uint64
}

// levelOf decides the Level of a change. A value on pending that is in what is
// pre-confirmed comes from there, whatever was sealed below it. Any other was
// written by a block that is new; where none did, it was there before and
// something in front of it went away.
func levelOf(tag Tag, preconfirmed, written bool) Level {
	switch {
	case tag == Pending && preconfirmed:
		return Preconfirmed
	case written:
		return Sealed
	}
	return Revoked
}
