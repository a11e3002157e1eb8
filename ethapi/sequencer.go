// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"context"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
)

// A Sequencer takes transactions in and makes the chain of them. It is safe for
// concurrent use.
type Sequencer interface {
	// Send returns when the transaction is accepted. One that is not taken gives
	// a *Refusal.
	Send(context.Context, *types.Transaction) error

	// WaitPreconfirmed returns when an accepted transaction is promised or
	// sealed, a *Refusal where it never will be, and ctx's error when that ends
	// before.
	WaitPreconfirmed(context.Context, chain.Hash) error

	// Waiting returns a transaction that is accepted and not promised yet.
	Waiting(context.Context, chain.Hash) (tx *types.Transaction, ok bool, err error)

	// NextNonce is that of an account's next transaction, after those promised
	// and those waiting.
	NextNonce(context.Context, chain.Address) (uint64, error)

	// Accounts are those that Sign has the keys of.
	Accounts() []chain.Address
	Sign(chain.Address, types.TxData) (*types.Transaction, error)
}

// A Refusal is why a transaction is not taken, in words for the caller.
type Refusal struct{ Message string }

func (r *Refusal) Error() string { return r.Message }

// sequencing are the methods that an API with a Sequencer has beside the others.
var sequencing = map[string]method{
	"eth_sendRawTransaction":     sendRawTransaction,
	"eth_sendRawTransactionSync": sendRawTransactionSync,
	"eth_sendTransaction":        sendTransaction,
	"eth_fillTransaction":        fillTransaction,
	"eth_accounts":               accounts,
}

func accounts(s *session, dst []byte, args *arguments) ([]byte, error) {
	if err := args.done(); err != nil {
		return nil, err
	}
	return appendJSON(dst, s.api.config.Sequencer.Accounts())
}
