// SPDX-License-Identifier: Apache-2.0

// Package flashblock knows what a pre-confirmation looks like on the wire and
// where it belongs.
//
// A sequencer that pre-confirms announces a block in pieces, about every 200 ms
// one: a flashblock. Those with one payload id are one build of one block. The
// piece with index 0 says what the block stands on, each piece brings the
// transactions that it adds, and its checksums are of the block so far.
//
// Decode reads a Message as feeds send it, Encode writes one. Place decides what
// a piece is to those already there, and a Tally computes the checksums. The
// package starts no goroutine and does no I/O.
package flashblock
