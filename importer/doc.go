// SPDX-License-Identifier: Apache-2.0

// Package importer brings blocks from files into a store: the RLP files that
// "geth export" writes, plain or gzip. Every block is executed on the state
// that the store has and checked as far as asked for before it is stored.
//
// An import may be repeated and resumed: blocks that the store has already are
// passed over. It stops at the first block that is not right, and everything
// before that block stays stored.
//
// Run starts one goroutine that reads and decodes ahead and recovers senders on
// all cores; it has ended when Run returns. What is read ahead is bounded in
// bytes.
package importer
