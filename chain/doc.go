// SPDX-License-Identifier: Apache-2.0

// Package chain holds the words that the rest of glimpse is written in: which
// block (Ref, Selector), how far a snapshot must be (Progress), the state at the
// end of a block (View), what it changed (Diff) and the reasons why a question
// about it has no answer (Miss).
//
// The state of block n is the state after the last transaction, withdrawal and
// system call of n.
//
// The package imports nothing of ours, starts no goroutine and does no I/O.
package chain
