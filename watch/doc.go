// SPDX-License-Identifier: Apache-2.0

// Package watch tells subscribers what changed from one published snapshot to
// the next.
//
// There is no bus of events. A Watcher holds the snapshot that it looked at last,
// waits until it is superseded, takes the newest and works out the Step between
// the two: which sealed blocks were removed and added, and which slots of a
// watched contract show another value. A snapshot keeps answering from its own
// branch after a reorg, so the difference between two is all there is to know.
// Where snapshots come faster than they are looked at, some are skipped; every
// Step is exact between the two that it names.
//
// Writers never wait for a Watcher (P4), and a Watcher never waits for a
// subscriber: each Subscription has a bounded queue, and one that is full ends the
// Subscription. A Watcher holds two snapshots at most, and none while nobody
// subscribes.
//
// The package starts no goroutine: Run is the one that does the work.
package watch
