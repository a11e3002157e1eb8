// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"errors"
	"fmt"
)

// Errors that cross packages.
var (
	// ErrNoTag is the answer to safe and finalized while no such block is known.
	ErrNoTag = errors.New("block not found")

	// ErrUnavailable is the answer where something is not here and cannot be
	// fetched from elsewhere now. It is never an absence (P2).
	ErrUnavailable = errors.New("not here, and cannot be fetched now")

	// ErrCorrupt marks stored data that contradicts itself. It is never the
	// caller's doing and no retry mends it.
	ErrCorrupt = errors.New("corrupt store")
)

// A Reason says why a block, or its state, cannot be answered for (P8).
type Reason string

// The reasons, as callers see them in error data.
const (
	Future       Reason = "future"
	Pruned       Reason = "pruned"
	UnknownHash  Reason = "unknown-hash"
	NotCanonical Reason = "not-canonical"
	NotYet       Reason = "not-yet"
)

// A Miss is the error for a block that this node cannot answer for. It says why
// and what range of blocks has state here.
type Miss struct {
	Reason Reason
	Oldest Number
	Latest Number
}

func (m *Miss) Error() string {
	what := "header not found"
	switch m.Reason {
	case Pruned:
		what = "state of this block is pruned"
	case UnknownHash:
		what = "header for hash not found"
	case NotCanonical:
		what = "hash is not currently canonical"
	case NotYet:
		what = "snapshot not reached yet"
	}
	return fmt.Sprintf("%s; this node has state of blocks %d to %d", what, m.Oldest, m.Latest)
}
