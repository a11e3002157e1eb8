// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"errors"
	"fmt"

	"glimpse/chain"
)

// An Outcome says what an Applier made of an event.
type Outcome int

const (
	// Applied: it has changed what the replica is at.
	Applied Outcome = iota + 1

	// Known: it was there already.
	Known

	// Waiting: pre-confirmed state on a block that is not here yet. It is shown
	// when the block comes.
	Waiting

	// Outdated: it is from a writer that another has replaced, or about a past
	// that sealed blocks have overtaken.
	Outdated

	// Searching: the Applier does not know yet where the replica's head is among
	// the events, and this one does not tell.
	Searching

	// Gap: something before it is missing. Pre-confirmed state is withdrawn. For
	// durable events the Applier searches for its place again, and has to be
	// given what is missing; for Pending it waits for the next whole one.
	Gap

	// Mismatch: the replica's store contradicts the writer's. The Applier takes
	// nothing any more: the store has to be built again.
	Mismatch

	// Foreign: it is about another chain.
	Foreign

	// Failed: the store could not do it. The Applier searches for its place
	// again, because what the store did is not known.
	Failed
)

var outcomes = map[Outcome]string{
	Applied: "applied", Known: "known", Waiting: "waiting", Outdated: "outdated", Searching: "searching",
	Gap: "gap", Mismatch: "mismatch", Foreign: "foreign", Failed: "failed",
}

// String returns the name in lower case.
func (o Outcome) String() string { return outcomes[o] }

// A Decision is an Outcome with what belongs to it.
type Decision struct {
	Outcome Outcome

	// Missing is what a Gap lacks, where that is known: the blocks between the
	// replica's place and the event's.
	Missing Range

	// Err says what is wrong, in words; nil where nothing is. That of Mismatch
	// wraps ErrMismatch, that of Foreign ErrForeign.
	Err error
}

// A Range is blocks by number, both ends among them. The zero Range is none.
type Range struct {
	From, To chain.Number
}

var (
	// ErrMismatch is wrapped by a Store for a block that contradicts what is in
	// it, and by the Decision that follows from that.
	ErrMismatch = errors.New("the store is not the writer's: it has to be built again from a snapshot")

	// ErrForeign is wrapped by the Decision about an event of another chain.
	ErrForeign = errors.New("another chain's stream")
)

func mismatch(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMismatch, fmt.Sprintf(format, args...))
}
