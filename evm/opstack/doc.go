// SPDX-License-Identifier: Apache-2.0

// Package opstack executes blocks of OP-Stack chains over a chain.View, with the
// EVM of package evm and what those chains change of Ethereum's rules: deposit
// transactions, fees for data and for the operator, fee vaults, precompiles and
// headers. It has the shape of package evm and fails in the same three ways.
//
// go-ethereum's types.Transaction and types.Block cannot hold a deposit. So
// blocks are a header and Transactions here, which are decoded from the bytes
// that feeds and raw blocks carry and keep those bytes: roots and fees are
// computed from them.
//
// Rules are known from Regolith to Lagoon. Those up to Jovian are tested beside
// op-geth; those of Karst and Lagoon follow their specifications. Blocks before
// Bedrock, and forks that have no name here, are refused with evm.ErrUnsupported.
//
// Not checked: from Isthmus on the withdrawals root, which is the storage root of
// the message passer and needs its trie, and that a deposit was made on the
// chain below, which only that chain can tell.
//
// Rules is safe for concurrent use; a Block belongs to one goroutine.
package opstack
