// SPDX-License-Identifier: Apache-2.0

package head

import "glimpse/chain"

// A State is the store at one moment. It never changes, and it is safe for
// concurrent use until it is released.
type State interface {
	Head() chain.Ref
	Oldest() chain.Number // the lowest block with state

	// Safe and Finalized report false while no such block is known.
	Safe() (chain.Ref, bool)
	Finalized() (chain.Ref, bool)

	Account(chain.Number, chain.Address) (chain.Account, error)
	Slot(chain.Number, chain.Address, chain.Slot) (chain.Value, error)
	Code(chain.Hash) ([]byte, error)

	// Number returns the height of a block; canonical is false for one that a
	// reorg removed. A hash never seen is a chain.Miss.
	Number(chain.Hash) (n chain.Number, canonical bool, err error)

	// Hash returns the hash of a block, Header and Body its RLP.
	Hash(chain.Number) (chain.Hash, error)
	Header(chain.Number) ([]byte, error)
	Body(chain.Number) ([]byte, error)

	// Diff returns what a block changed. SlotHistory and CodeHistory return the
	// values from one block to another, beginning with the one in force at the
	// first; Slots lists what is not zero after a slot, in order. All fail with
	// a *chain.Miss where there is no state.
	Diff(chain.Number) (*chain.Diff, error)
	SlotHistory(a chain.Address, k chain.Slot, from, to chain.Number, limit int) (versions []chain.SlotVersion, more bool, err error)
	CodeHistory(a chain.Address, from, to chain.Number, limit int) (versions []chain.CodeVersion, more bool, err error)
	Slots(a chain.Address, n chain.Number, after *chain.Slot, limit int) (slots []chain.SlotDiff, more bool, err error)

	// Receipts returns the block's receipts as they are stored, Transaction
	// where a transaction is; ok is false where no block has it.
	Receipts(chain.Number) ([]byte, error)
	Transaction(chain.Hash) (n chain.Number, index int, ok bool, err error)

	// Retain reports false when the State is already gone. Each Retain, and the
	// State's creation, is matched by one Release.
	Retain() bool
	Release()
}
