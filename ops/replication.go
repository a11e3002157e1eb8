// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"time"

	"glimpse/chain"
)

// Replication is what a node tells its replicas, or is told as one.
type Replication struct {
	Publishing *Publishing // nil where it tells nobody
	Tailing    *Tailing    // nil where it is no replica
}

// Publishing are the numbers of a writer with replicas, since it began.
type Publishing struct {
	InCharge  bool         // it publishes, and no other writer does
	Published chain.Number // the newest block in the stream

	Events, Messages, Bytes uint64 // that are in the stream
	Retries                 uint64 // messages sent again because their fate was not known

	PendingWhole, PendingParts uint64 // events of pre-confirmed state
	PendingBytes, PendingLost  uint64
	FactsDropped               uint64

	Snapshots *Snapshots // nil where none are made
}

// Snapshots are the copies of the store that were made for replicas.
type Snapshots struct {
	Made, Failed uint64
	Damaged      uint64 // chunks that had to be sent again
	Sent         uint64 // bytes

	// Of the newest. Last is zero before the first.
	Last  time.Time
	Block chain.Number
	Bytes int64
}

// Tailing are the numbers of a replica.
type Tailing struct {
	ReplicaFacts

	Delay          time.Duration     // from the server's taking the last message to its being applied
	Outcomes       map[string]uint64 // of durable events
	PendingOutcome map[string]uint64 // of pre-confirmed state
	PendingLost    uint64
	Malformed      uint64
	Restarts       uint64
	Rebuilds       uint64
}

// ReplicaFacts are what the readiness of a replica depends on.
type ReplicaFacts struct {
	CaughtUp   bool // readers see all that the stream had when it was last read to its end
	Rebuilding bool // there is no store yet, or it has to be built anew
	Connected  bool

	// Fetched bytes of Fetching are here of the snapshot that is downloaded; both
	// are zero while none is.
	Fetched, Fetching int64

	// Behind is for how long the replica has been behind what it heard of the
	// writer, and Blocks how many blocks that is.
	Behind time.Duration
	Blocks uint64

	// Answered is when a server last said something about the stream; zero is
	// never.
	Answered time.Time

	// Heard is when the writer was last heard of, zero is never. HeardHere says
	// that this was since the stream was last lost and found: otherwise nobody
	// knows what was missed.
	Heard     time.Time
	HeardHere bool

	// Limit is how long it may be behind, and without an answer. SilenceLimit is
	// how long nothing may be heard of the writer; 0 is for any time.
	Limit        time.Duration
	SilenceLimit time.Duration
}
