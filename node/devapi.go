// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/devchain"
	"glimpse/ethapi"
	"glimpse/flashblock/feed"
)

// devSequencer is the embedded chain as ethapi sees it. It signs for the accounts
// whose keys everybody knows.
type devSequencer struct {
	*devchain.Sequencer
	accounts []devchain.Account
	signer   types.Signer
}

var (
	_ ethapi.Sequencer = (*devSequencer)(nil)
	_ ethapi.Dev       = (*devSequencer)(nil)
	_ ethapi.Feed      = (*feed.Publisher)(nil)
)

func newDevSequencer(s *devchain.Sequencer, signer types.Signer) *devSequencer {
	return &devSequencer{s, devchain.Accounts(), signer}
}

func (s *devSequencer) Send(ctx context.Context, tx *types.Transaction) error {
	return refusal(s.Sequencer.Send(ctx, tx))
}

func (s *devSequencer) WaitPreconfirmed(ctx context.Context, hash chain.Hash) error {
	return refusal(s.Sequencer.WaitPreconfirmed(ctx, hash))
}

func (s *devSequencer) Waiting(ctx context.Context, hash chain.Hash) (*types.Transaction, bool, error) {
	return s.Transaction(ctx, hash)
}

func (s *devSequencer) Accounts() []chain.Address {
	addresses := make([]chain.Address, len(s.accounts))
	for i, a := range s.accounts {
		addresses[i] = a.Address
	}
	return addresses
}

func (s *devSequencer) Sign(from chain.Address, tx types.TxData) (*types.Transaction, error) {
	for _, a := range s.accounts {
		if a.Address == from {
			return types.SignNewTx(a.Key, s.signer, tx)
		}
	}
	return nil, &ethapi.Refusal{Message: fmt.Sprintf("unknown account: no key of %s is here", from)}
}

func (s *devSequencer) Mine(ctx context.Context) error {
	_, err := s.Sequencer.Mine(ctx)
	return err
}

func (s *devSequencer) Reorg(ctx context.Context, blocks int) error {
	_, err := s.Sequencer.Reorg(ctx, blocks)
	return refusal(err)
}

func (s *devSequencer) Revoke(ctx context.Context, hash chain.Hash) error {
	return refusal(s.Sequencer.Revoke(ctx, hash))
}

// refusal turns what is the caller's business into what the caller is told.
func refusal(err error) error {
	var refused *devchain.Refusal
	for _, cause := range []error{devchain.ErrDepth, devchain.ErrUnknownTransaction, devchain.ErrDropped, devchain.ErrBusy} {
		if errors.Is(err, cause) {
			return &ethapi.Refusal{Message: err.Error()}
		}
	}
	if errors.As(err, &refused) {
		return &ethapi.Refusal{Message: refused.Error()}
	}
	return err
}
