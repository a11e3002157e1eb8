// SPDX-License-Identifier: Apache-2.0

// Package devchain is the embedded chain: a sequencer that pre-confirms waiting
// transactions every flashblock time and seals a valid post-merge block from
// exactly what it pre-confirmed every block time. With a flashblock time of
// zero it only seals.
//
// One goroutine, that of Sequencer.Run, owns the transaction pool, the block
// being built and the store. All other methods hand it a question and wait for
// the answer; they are safe for concurrent use. What a transaction is refused
// for without looking at the state, its signature and its blobs among it, is
// checked before that, on the caller's goroutine.
//
// Memory is bounded by Limits and by the gas limit of a block. Nothing of the
// pool outlives the process; what was sealed is in the store, and Run goes on
// from the store's head.
//
// Time on this chain is Ethereum's: whole seconds, and later than the parent's.
// A block is dated when building begins, with the wall clock or one second
// after its parent, whichever is later. Blocks less than a second apart are
// therefore dated ahead of the wall clock.
//
// The chain can misbehave on request: it can seal a block without a transaction
// that it pre-confirmed (Revoke) and replace its last blocks (Reorg).
package devchain
