// SPDX-License-Identifier: Apache-2.0

// Package merkle computes state roots from Diffs. It checks what glimpse really
// stores: a Diff that lost a slot, or a wipe that was not noted, gives another
// root than the block's header has.
//
// The tries are go-ethereum's. Their nodes are kept under their path, newest
// state only, as opaque side data of the archive, written in the batch of the
// block that they belong to (P5):
//
//	key                          value
//	'a' path                     node of the account trie
//	's' keccak(address)(32) path node of an account's storage trie
//	'r'                          number(8) block hash(32) state root(32)
//
// A path is one byte per nibble. Leaves are stored with the branch above them, as
// one page: see page. A node read back must have the hash that its parent, or the
// root record, names; otherwise the read is chain.ErrCorrupt.
//
// A State belongs to one goroutine. It reads Nodes from several at once while
// it hashes storage tries and starts none that outlives a call.
package merkle
