// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"time"

	"glimpse/chain"
)

// Heads is what a node has of its chain at one moment.
type Heads struct {
	Latest chain.Ref
	Sealed time.Time    // the timestamp of the latest block
	Oldest chain.Number // the lowest block whose state is here

	Safe      *chain.Ref // nil while no such block is known
	Finalized *chain.Ref // nil while no such block is known

	Pending *Preconfirmed // nil while nothing is pre-confirmed
}

// Preconfirmed is how far a block that is not sealed has been promised.
type Preconfirmed struct {
	Number chain.Number
	Index  uint64 // that of the last flashblock
}

// Facts is all that is known when the node's readiness is judged. It is a value
// of one moment and never changes.
type Facts struct {
	Started  time.Time // since when the node has been running
	Draining bool      // it will stop, and asks for no more requests
	Heads    *Heads    // nil while there is nothing to answer from

	Blocks Arrivals // of sealed blocks
	Feed   Arrivals // of messages of the flashblocks feed

	// Applied is when pre-confirmed state last became newer. Zero is never.
	Applied time.Time

	StoreFailure StoreFailure

	Replica *ReplicaFacts // nil where the node is no replica
}

// Arrivals is how something that should keep arriving has done so.
type Arrivals struct {
	Last time.Time // zero where nothing arrived since the start

	// Limit is the longest silence that is healthy. Zero is none: nothing is
	// expected to arrive.
	Limit time.Duration
}

// silence returns how long nothing has arrived. Until something has, that is
// the time since the start: a node that never heard anything is as silent as one
// that heard of it at its start.
func (a Arrivals) silence(started, now time.Time) time.Duration {
	last := a.Last
	if last.IsZero() {
		last = started
	}
	return now.Sub(last)
}

// A StoreFailure is the last read of the store that failed.
type StoreFailure struct {
	At   time.Time // zero where none has failed
	Text string

	// Clears is how long after it the node is ready again.
	Clears time.Duration
}
