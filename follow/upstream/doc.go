// SPDX-License-Identifier: Apache-2.0

// Package upstream asks other nodes over JSON-RPC: for blocks, heads, receipts,
// state and traces. It believes as little as it can: a block has the hash that
// its header has and the transactions that its root commits to, a proof leads
// to the state root, null is not zero, and what a node cannot do is said at the
// start and not guessed later.
//
// A Pool is several nodes of one chain. A question goes to the healthiest, and
// to the next one where that fails; a node of another chain is never asked.
//
// The conversions of traces and of EIP-7928 access lists into a chain.Diff are
// pure functions of what was fetched and of a chain.View.
package upstream
