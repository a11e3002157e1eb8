// SPDX-License-Identifier: Apache-2.0

package flashblock

import (
	"bytes"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"

	"glimpse/chain"
)

// TransactionsRoot returns the root that a header has which commits to these
// transactions, given in their binary encoding and of whatever type.
func TransactionsRoot(raw [][]byte) chain.Hash {
	return types.DeriveSha(rawTransactions(raw), trie.NewStackTrie(nil))
}

// rawTransactions implements types.DerivableList.
type rawTransactions [][]byte

func (r rawTransactions) Len() int { return len(r) }

func (r rawTransactions) EncodeIndex(i int, w *bytes.Buffer) { w.Write(r[i]) }
