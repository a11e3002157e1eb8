// SPDX-License-Identifier: Apache-2.0

// Package merkletest keeps trie nodes in memory, for tests.
package merkletest

import (
	"bytes"
	"maps"

	"glimpse/merkle"
)

// Nodes are trie nodes by their keys. They can be opened with merkle.Open.
type Nodes map[string][]byte

// Side returns a node; false where there is none.
func (n Nodes) Side(key []byte) ([]byte, bool, error) {
	value, ok := n[string(key)]
	return value, ok, nil
}

// Write makes the changes.
func (n Nodes) Write(writes []merkle.Write) {
	for _, w := range writes {
		switch {
		case w.Prefix:
			maps.DeleteFunc(n, func(key string, _ []byte) bool { return bytes.HasPrefix([]byte(key), w.Key) })
		case w.Value == nil:
			delete(n, string(w.Key))
		default:
			n[string(w.Key)] = w.Value
		}
	}
}
