// SPDX-License-Identifier: Apache-2.0

// Package evm executes blocks over a chain.View with go-ethereum's EVM and
// returns what they changed as a chain.Diff. It and the packages below it, which
// build the rules of other chains on a Frame, are the only ones that know
// go-ethereum's core/vm and core/state.
//
// Rules holds what is fixed for a chain; Rules.Execute runs and checks a whole
// block; Rules.Begin opens one that arrives in parts, and each Block.Apply
// returns the Diff of its part; Rules.Call and its like run one message and keep
// nothing. The EVM writes into go-ethereum's own StateDB:
// reverts, EIP-6780, EIP-7702 and account deletion are go-ethereum's logic. A
// recorder around it notes which accounts and slots were written and what they
// held before, and values are read back once a transaction is final, so that a
// Diff is exact and holds nothing that ended up as it was.
//
// An execution fails in one of three ways. A read of the View failed
// (ErrStateRead): nothing is known about the block, and it may be tried again.
// The block breaks the rules (*InvalidBlockError): reject it. The rules are
// not known here (ErrUnsupported): stop. Reads that fail inside the EVM look
// like something else there, such as an empty account, so they are looked for
// before any other outcome is believed (P2).
//
// Not checked: the proof-of-work seal, and the ancestry of uncles beyond their
// count and height.
//
// Rules is safe for concurrent use; a Block belongs to one goroutine.
package evm
