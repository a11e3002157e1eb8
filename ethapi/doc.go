// SPDX-License-Identifier: Apache-2.0

// Package ethapi gives the JSON-RPC methods their meaning: decode every
// parameter, resolve the block once, read, encode.
//
// All parameters are checked before any state is touched, so that a bad one is
// named whatever the block is. Everything that one request or batch asks is
// answered from one Snapshot (P1). A failed read is an error, never a zero (P2),
// and the table in errors.go is the only place where a Go error becomes a code.
//
// An API is safe for concurrent use and starts no goroutine.
package ethapi
