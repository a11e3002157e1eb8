// SPDX-License-Identifier: Apache-2.0

// Package origin reads the state that a node does not have yet from an upstream
// node.
//
// A node that follows a chain begins at some block, its first, and knows only
// what changed since. What did not change is as it was at the first block: an
// Origin reads that when it is asked for and has it kept for ever, absence
// included. Blocks before the first are answered by a Past, which keeps nothing
// but a bounded cache of what is final.
//
// Reads of one key that overlap make one upstream call, and reads that come
// within a moment of each other travel together. A read that fails is an error
// to all who wait for it, is not remembered, and is never a zero (P2).
//
// Which block to ask at needs no luck: a key that a View does not know is the
// same at every block from the first to the View's own, and the store says how
// much longer it stayed so. The upstream is asked at one of these blocks by its
// hash, so neither a new block nor a reorganisation in the meantime can make the
// answer wrong; at worst the upstream no longer has that block, which is an
// error.
//
// Goroutines last as long as there is something to fetch, and end with Close.
package origin
