// SPDX-License-Identifier: Apache-2.0

// Package replica has what a writer tells its replicas and what a replica makes
// of it: the events of a chain, their encoding, and the Applier, which is the
// state machine of a replica. It is pure logic: it knows no network and starts
// no goroutine. Events are drawn in docs/formats.md.
//
// There are two sequences of events, each counted by itself:
//
//   - what is durable: blocks that were sealed, the ends of branches, tags and
//     facts. They arrive in order, or a replica sees that they did not;
//   - what is pending: pre-confirmed state, of which only the newest matters.
//     Each event names the sealed block that it stands on by hash, so that the
//     two sequences need not arrive by the same way.
//
// An Applier believes nothing that it can check. A block is applied only where
// its parent is the block before, and only where the store's digest after it is
// the writer's. A reorganisation becomes visible when its last block is there
// (P6). Whatever is missing, out of order or contradicts withdraws what is
// pre-confirmed (P3), is answered with a Decision that says what to do, and
// leaves readers with the last state that was right.
package replica
