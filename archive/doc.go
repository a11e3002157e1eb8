// SPDX-License-Identifier: Apache-2.0

// Package archive keeps the state of a chain at every block, on Pebble.
//
// One keyspace holds everything. Each version of a slot or account carries its
// own value under a key that ends in the complement of its block, so the
// newest version comes first and a read at block n is one seek:
//
//	s address(20) slot(32) ^block(8)  slot value, no leading zeros; empty is zero
//	a address(20) ^block(8)           account; empty is one that does not exist
//	w address(20) ^block(8)           storage wiped at this block
//	c code hash(32)                   first block(8), bytecode
//	b block(8)                        hash(32), parent(32), header, body
//	d block(8)                        digest(32) of all blocks up to it
//	j block(8)                        the journal: the block's chain.Diff, with the
//	                                  hashes of its bytecode
//	h block hash(32)                  block(8); kept when a block is orphaned
//	r block(8)                        hashes of its transactions, receipts
//	x first of a transaction hash(8)  block(8), index(4) of each that has them
//	t caller's key                    side data: newest value only
//	o address(20)                     account at the first block, in a sparse store
//	o address(20) slot(32)            slot at the first block, in a sparse store
//	m name                            format, identity, heads, first and oldest
//	                                  block
//
// docs/formats.md draws every value.
//
// What the package guarantees, beside the promises of the design:
//
//   - A1. A DB is always at the end of some block: each write is one batch with
//     the head marker in it (P5).
//   - A2. State and diffs exist for the blocks oldest to head. At or below
//     oldest a key has at most one version, the one in force, and it is neither
//     zero nor void.
//   - A3. A slot version of block c is void at n if the address was wiped at
//     some w with c < w <= n.
//   - A4. A Reader never changes: it answers from the moment it was published,
//     whatever is committed, unwound or pruned later (P1, P6).
//   - A5. After a write fails the DB refuses all others and serves the last
//     state that was written whole.
//   - A6. A sparse store begins with some block whose state it does not know. A
//     key that no block wrote since is what it was then: that is in o, or
//     unknown, never zero. What hides it is kept for ever: at or below oldest a
//     version may be zero or an account that does not exist, and the last wipe
//     of an address stays. Other stores know everything, and pay nothing for it.
//   - A7. Every block has a Digest. It covers the block before it and all that was
//     given for the block itself, is written in the block's batch and taken back
//     with it.
//
// A DB has one writer at a time: writing methods wait for each other. Readers
// take no lock that a writer holds (P4). Pebble flushes and compacts in the
// background until Close; the package's own goroutines last for one write.
package archive
