// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"time"

	"glimpse/flashblock"
)

// A Happening is what an Event is about.
type Happening int

const (
	// Connected says that a feed is followed.
	Connected Happening = iota + 1

	// Disconnected says that a connection ended or could not be made; Err says
	// why, and Retry when the next attempt is made.
	Disconnected

	// Refused says that messages could not be decoded, or were too long; Err is
	// about the last of them.
	Refused

	// Disagreed says that another content of a flashblock came first, and is
	// the one that was delivered.
	Disagreed

	// Dropped says that flashblocks were lost because nobody took them.
	Dropped
)

var happenings = map[Happening]string{
	Connected: "connected", Disconnected: "disconnected", Refused: "refused", Disagreed: "disagreed", Dropped: "dropped",
}

// String returns the name in lower case.
func (h Happening) String() string { return happenings[h] }

// An Event is something that an operator may want to know of a feed.
type Event struct {
	What Happening
	Feed string // its host, with a number where several have the same

	Err   error         // of Disconnected and Refused
	Retry time.Duration // of Disconnected

	// Position is that of the last flashblock, of Disagreed and Dropped.
	Position flashblock.Position

	// Count is how often it happened since the last Event of its kind, of
	// Refused, Disagreed and Dropped.
	Count uint64
}

// eventEvery is the least time between two events of a kind that comes in floods.
const eventEvery = 10 * time.Second

// A throttle holds back events of one kind. It belongs to one goroutine.
type throttle struct {
	count uint64
	next  time.Time
}

// ready counts something that happened, and returns the count where it is time to
// tell it.
func (t *throttle) ready(now time.Time) (uint64, bool) {
	t.count++
	if now.Before(t.next) {
		return 0, false
	}
	n := t.count
	t.count, t.next = 0, now.Add(eventEvery)
	return n, true
}

// Counts are of one feed or of all.
type Counts struct {
	Messages      uint64 // flashblocks that were understood
	Duplicates    uint64 // of these, those that had come before
	Disagreements uint64 // of these, those that had come before with another content
	Dropped       uint64 // of these, those that were lost because nobody took them
	Bad           uint64 // messages that were not understood or too long
	Ends          uint64 // messages that say that a build is complete
	Reconnects    uint64 // connections that ended or could not be made
}

// FeedStats are about one feed.
type FeedStats struct {
	Name        string
	Connected   bool
	LastMessage time.Time // when a flashblock came, zero where none has
	Counts
}

// Stats are about all feeds of a Client.
type Stats struct {
	Connected   int       // feeds that are followed at the moment
	LastMessage time.Time // the latest of all feeds
	Counts                // the sums

	Feeds []FeedStats // in the order of ClientOptions.Feeds
}
