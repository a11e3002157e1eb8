// SPDX-License-Identifier: Apache-2.0

package head

import "glimpse/chain"

// Safe and Finalized return the blocks that have these tags; false while no
// such block is known.
func (l *Lease) Safe() (chain.Ref, bool)      { return l.state.Safe() }
func (l *Lease) Finalized() (chain.Ref, bool) { return l.state.Finalized() }

// Hash returns the hash of the sealed block of height n. After the head the
// error is a *chain.Miss.
func (l *Lease) Hash(n chain.Number) (chain.Hash, error) { return l.state.Hash(n) }

// Diff returns what the sealed block of height n changed. The error is a
// *chain.Miss where n has no state here. The caller owns the result.
func (l *Lease) Diff(n chain.Number) (*chain.Diff, error) { return l.state.Diff(n) }

// SlotHistory returns the values that a slot had in sealed blocks, from one to
// another, oldest first. The first is the value in force at from, with from as
// its block; each other one differs from the one before it. At most limit are
// returned, at least one; more says that there are later ones, which a call
// from the last block returned continues with, that value again first. The error
// is a *chain.Miss where a block of the range has no state here.
func (l *Lease) SlotHistory(a chain.Address, k chain.Slot, from, to chain.Number, limit int) (versions []chain.SlotVersion, more bool, err error) {
	return l.state.SlotHistory(a, k, from, to, limit)
}

// CodeHistory returns the codes that an account had in sealed blocks, in the
// manner of SlotHistory.
func (l *Lease) CodeHistory(a chain.Address, from, to chain.Number, limit int) (versions []chain.CodeVersion, more bool, err error) {
	return l.state.CodeHistory(a, from, to, limit)
}
