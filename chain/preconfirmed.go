// SPDX-License-Identifier: Apache-2.0

package chain

import "github.com/ethereum/go-ethereum/core/types"

// A Preconfirmed is a block that the sequencer has promised so far and not
// sealed. It is immutable.
type Preconfirmed struct {
	// Header holds what is known: its parent, number, time and fees, and gas
	// used, bloom and receipts root of the transactions so far. Its state root
	// is zero and its hash means nothing.
	Header *types.Header

	// Index is that of the last flashblock in it.
	Index uint64

	// Hashes are those of all transactions. Transactions has them whole, and is
	// nil on chains with transactions that go-ethereum does not know. Receipts has
	// one for each, whose block hash is zero, and is nil where nothing was
	// executed.
	Hashes       []Hash
	Transactions []*types.Transaction
	Receipts     []*types.Receipt
}
