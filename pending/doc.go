// SPDX-License-Identifier: Apache-2.0

// Package pending holds pre-confirmed state: what the sequencer has promised and
// not sealed.
//
// An Overlay is that state at one moment, as what it changes of the sealed state
// below; it is immutable and read without locks (P4). The Tracker is the one
// writer: it takes flashblocks and sealed blocks in, executes what belongs on
// top, and gives the Overlay that stands after each. Where a flashblock belongs is
// decided by flashblock.Place, what a sealed block does by Reconcile; both are
// pure.
//
// Pending is honest (P3): it stands on the sealed head by hash, each flashblock
// is executed here and compared with its checksums, builds of a block are never
// mixed, and what is stale or contradicts itself is dropped, after which there is
// no pre-confirmed state and pending means latest.
//
// The package starts no goroutine and does no I/O.
package pending
