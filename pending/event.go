// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"glimpse/chain"
	"glimpse/flashblock"
)

// A Kind says what happened to a flashblock or a block.
type Kind int

const (
	// Applied: a flashblock was executed and is part of the Overlay.
	Applied Kind = iota + 1

	// Restored: a flashblock that was applied before was executed again, on a
	// sealed parent or with pieces that had been missing, and is part of the
	// Overlay again.
	Restored

	// Ignored: a flashblock is here already, or of a block or build that is past.
	Ignored

	// Waiting: a flashblock is kept until what must come before it is here.
	Waiting

	// Refused: there is no room to keep a flashblock, or it is too far ahead.
	Refused

	// Replaced: a build gave way to another one of the same block.
	Replaced

	// Mismatched: executing a flashblock gave other checksums than it carries.
	// Its block and those above were dropped.
	Mismatched

	// Invalid: a flashblock cannot be executed by the chain's rules. Its block
	// and those above were dropped.
	Invalid

	// Unread: the state could not be read. The block and those above were
	// dropped and will be executed again with the next flashblock.
	Unread

	// Expired: nothing came for too long, and the Overlay was dropped.
	Expired

	// Promoted: a block was sealed as it was pre-confirmed.
	Promoted

	// Rebased: a block was sealed with what was pre-confirmed and more, and what
	// stands on it is executed again.
	Rebased

	// Discarded: a block was sealed without what was pre-confirmed.
	Discarded

	// Kept: a sealed block changed nothing.
	Kept
)

var kinds = map[Kind]string{
	Applied: "applied", Restored: "restored", Ignored: "ignored", Waiting: "waiting", Refused: "refused",
	Replaced: "replaced", Mismatched: "mismatched", Invalid: "invalid", Unread: "unread", Expired: "expired",
	Promoted: "promoted", Rebased: "rebased", Discarded: "discarded", Kept: "kept",
}

// String returns the name in lower case.
func (k Kind) String() string { return kinds[k] }

// An Event is one thing that a Tracker did, for counters and subscribers.
type Event struct {
	Kind Kind

	// Position is that of the flashblock. Of a block it is the last one that was
	// applied; where a sealed block met none, only the number is set.
	Position flashblock.Position

	// Verdict is where a flashblock belonged that is ignored, waiting or refused;
	// zero in other events.
	Verdict flashblock.Verdict

	// Withdrawn are transactions that are not pre-confirmed any more. Those of a
	// Discarded block are revoked: the block was sealed without them. Others may
	// come back.
	Withdrawn []chain.Hash

	// Err is the reason of Mismatched, Invalid and Unread, nil otherwise.
	Err error
}
