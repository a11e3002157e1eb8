// SPDX-License-Identifier: Apache-2.0

package devchain

import (
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/core/txpool"
	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
)

// do has the owner run f and returns its error. It fails with ctx's error if ctx
// ends before the owner takes f, and with ErrStopped once Run has returned.
func (s *Sequencer) do(ctx context.Context, f func() error) (err error) {
	done := make(chan struct{})
	command := func() {
		defer close(done)
		err = f()
	}
	select {
	case s.commands <- command:
		<-done // the owner finishes what it has taken
		return err
	case <-s.ended:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Send gives a transaction to the pool. It is accepted when Send returns nil, and
// executed with the next flashblock if its turn has come. A transaction that is
// refused gives a *Refusal. A blob transaction comes with its blobs, which are
// checked and not kept.
func (s *Sequencer) Send(ctx context.Context, tx *types.Transaction) error {
	e, err := validate(tx, s.options.Rules, s.next.Load(), s.minTip)
	if err != nil {
		return refuse(err)
	}
	return s.do(ctx, func() error { return s.admit(e) })
}

// admit decides about a transaction by the state that the block being built has
// come to.
func (s *Sequencer) admit(e *entry) error {
	b := s.building
	if b.has(e.tx.Hash()) {
		return refuse(txpool.ErrAlreadyKnown)
	}
	sender, err := b.ledger.account(e.from)
	if err != nil {
		return fmt.Errorf("read account %s: %w", e.from, err)
	}
	if err := checkFees(e.tx, e.from, b.header, b.blobFee()); err != nil {
		return refuse(err)
	}
	replaced, err := s.pool.add(e, sender)
	if err != nil {
		return refuse(err)
	}
	if replaced != nil {
		s.forget(replaced, errReplaced)
	}
	return nil
}

// Transaction returns a transaction that waits; ok is false where none with this
// hash does. One that is pre-confirmed does not wait any more. Blob transactions
// are without their blobs.
func (s *Sequencer) Transaction(ctx context.Context, hash chain.Hash) (tx *types.Transaction, ok bool, err error) {
	err = s.do(ctx, func() error {
		if e := s.pool.byHash[hash]; e != nil {
			tx, ok = e.tx, true
		}
		return nil
	})
	return tx, ok, err
}

// NextNonce returns the nonce of an account's next transaction, after those that
// are pre-confirmed and those that wait without a gap.
func (s *Sequencer) NextNonce(ctx context.Context, addr chain.Address) (nonce uint64, err error) {
	err = s.do(ctx, func() error {
		account, err := s.building.ledger.account(addr)
		if err != nil {
			return fmt.Errorf("read account %s: %w", addr, err)
		}
		nonce = s.pool.nonceAfter(addr, account.Nonce)
		return nil
	})
	return nonce, err
}

// Mine executes and pre-confirms what waits and seals the block, also while
// sealing is paused. The next block begins then.
func (s *Sequencer) Mine(ctx context.Context) (sealed *Sealed, err error) {
	err = s.do(ctx, func() error {
		if s.preconfirms() {
			if err := s.preconfirm(); err != nil {
				s.fail(err)
				return err
			}
		}
		var err error
		sealed, err = s.sealNext()
		s.fail(err)
		s.clock.restart(time.Now())
		return err
	})
	return sealed, err
}

// Pause stops sealing until Resume. Flashblocks go on.
func (s *Sequencer) Pause(ctx context.Context) error {
	return s.do(ctx, func() error { s.clock.paused = true; return nil })
}

// Resume lets sealing go on; a block that became due meanwhile is sealed at once.
func (s *Sequencer) Resume(ctx context.Context) error {
	return s.do(ctx, func() error { s.clock.paused = false; return nil })
}

// Revoke has the block sealed without a transaction that is pre-confirmed for it,
// or will be: flashblocks go on as if nothing had happened, and the sealed block
// breaks their promise. The transaction is lost; those in the block that cannot
// be executed without it wait again. One that neither waits nor is pre-confirmed
// gives ErrUnknownTransaction.
func (s *Sequencer) Revoke(ctx context.Context, hash chain.Hash) error {
	return s.do(ctx, func() error {
		if s.pool.byHash[hash] == nil && !s.building.has(hash) {
			return ErrUnknownTransaction
		}
		s.revoked[hash] = struct{}{}
		return nil
	})
}
