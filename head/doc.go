// SPDX-License-Identifier: Apache-2.0

// Package head holds the one published Snapshot of the node and decides what a
// Selector means in it.
//
// Publishing is one atomic pointer store. A reader takes a Lease on the Snapshot
// that is current when its request begins and answers everything from it, so
// that latest, safe, finalized, earliest and pending are read once, together
// (P1), and no reader waits for a writer (P4) or sees two branches (P6). A reader
// that wants a newer one than there is waits for a channel, not for a lock.
//
// The package starts no goroutine and does no I/O of its own.
package head
