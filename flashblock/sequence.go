// SPDX-License-Identifier: Apache-2.0

package flashblock

import (
	"fmt"

	"glimpse/chain"
)

// A Position names one piece of one build.
type Position struct {
	Number  chain.Number
	Payload PayloadID
	Index   uint64
}

// Position returns the place of m.
func (m *Message) Position() Position {
	return Position{Number: m.Number, Payload: m.Payload, Index: m.Index}
}

// String returns number, index and payload id, "7.3 (0x…)".
func (p Position) String() string {
	return fmt.Sprintf("%d.%d (%s)", p.Number, p.Index, p.Payload)
}

// A Verdict says where a flashblock belongs.
type Verdict int

const (
	// Extend is the next piece of a build that is applied. Where other blocks
	// stand on that build already, they stand on too little of it, and all
	// has to be applied again.
	Extend Verdict = iota + 1

	// NewBlock is index 0 of the block that follows.
	NewBlock

	// Replace is index 0 of another build of an applied block, with the same
	// parent. The build before is void, and so is what stands on it.
	Replace

	// Duplicate is a piece that is here already.
	Duplicate

	// Early is a piece of a block whose parent is not here yet. It is the
	// normal case for index 0, which is sent before the parent is sealed.
	Early

	// Gap is a piece before which others of its build are missing. What is
	// applied stays: it is still a true beginning.
	Gap

	// Stale is a piece of a block that is sealed, or of a build that was
	// replaced or refused.
	Stale
)

var verdicts = map[Verdict]string{
	Extend: "extend", NewBlock: "new block", Replace: "replace", Duplicate: "duplicate",
	Early: "early", Gap: "gap", Stale: "stale",
}

// String returns the name in lower case.
func (v Verdict) String() string { return verdicts[v] }

// A Build is what is applied of one block.
type Build struct {
	Payload PayloadID
	Parent  chain.Hash
	Last    uint64 // the highest index applied

	// Hash is that of the block as it is now, zero where the feed does not tell.
	Hash chain.Hash

	// Frozen says that later pieces are here and one before them is not.
	Frozen bool
}

// A Standing is all that decides where one flashblock belongs.
type Standing struct {
	Latest chain.Ref // the newest sealed block

	// Builds are what is applied, that of the block after Latest first and
	// without a gap in their numbers.
	Builds []Build

	Held bool // the very piece is here, applied or not
	Void bool // its build was replaced or refused
}

// Place decides where m belongs.
func Place(s Standing, m *Message) Verdict {
	switch {
	case m.Number <= s.Latest.Number || s.Void:
		return Stale
	case s.Held:
		return Duplicate
	}
	// Offset 0 is the block after Latest.
	offset := uint64(m.Number - s.Latest.Number - 1)
	switch applied := uint64(len(s.Builds)); {
	case offset < applied:
		return s.Builds[offset].place(m)
	case offset > applied:
		return Early
	}
	parent, first := m.Parent()
	switch {
	case !first:
		return Gap
	case s.carries(parent):
		return NewBlock
	default:
		return Early
	}
}

// place decides about a piece of a block of which a build is applied.
func (b Build) place(m *Message) Verdict {
	parent, first := m.Parent()
	switch {
	case m.Payload != b.Payload && first && parent == b.Parent:
		return Replace
	case m.Payload != b.Payload && first:
		return Early // on another parent, which may become the sealed one
	case m.Payload != b.Payload:
		return Gap
	case m.Index <= b.Last:
		return Duplicate
	case m.Index == b.Last+1:
		return Extend
	default:
		return Gap
	}
}

// carries reports whether a block with this parent stands on what is there. The
// hash of a block that is not sealed is often not known; then it is taken for the
// parent unless more of it is missing, and the sealed block will tell.
func (s Standing) carries(parent chain.Hash) bool {
	if len(s.Builds) == 0 {
		return parent == s.Latest.Hash
	}
	top := s.Builds[len(s.Builds)-1]
	return !top.Frozen && (top.Hash == chain.Hash{} || top.Hash == parent)
}
