// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
)

func sendRawTransaction(s *session, dst []byte, args *arguments) ([]byte, error) {
	tx := args.transaction()
	if err := args.done(); err != nil {
		return nil, err
	}
	return s.send(dst, tx)
}

func (s *session) send(dst []byte, tx *types.Transaction) ([]byte, error) {
	if err := s.api.config.Sequencer.Send(s.ctx, tx); err != nil {
		return nil, err
	}
	hash := tx.Hash()
	return appendData(dst, hash[:]), nil
}

// transaction takes a signed transaction in its binary encoding.
func (a *arguments) transaction() *types.Transaction {
	tx := new(types.Transaction)
	v, given := a.required()
	if !given {
		return tx
	}
	raw, why := parseData(v)
	if why == "" {
		if err := tx.UnmarshalBinary(raw); err != nil {
			why = err.Error()
		}
	}
	if why != "" {
		a.refuse("transaction", why)
	}
	return tx
}

// How long eth_sendRawTransactionSync waits, and at most.
const (
	syncTimeout    = 6 * time.Second
	maxSyncTimeout = 60 * time.Second
)

// codeSyncTimeout is EIP-7966's: the transaction is accepted, and not promised
// in time.
const codeSyncTimeout = 4

// A timeout is the error of a wait that took too long. It names what is still
// on its way.
type timeout struct {
	hash  chain.Hash
	after time.Duration
}

func (t *timeout) Error() string {
	return fmt.Sprintf("the transaction was added to the transaction pool but was not pre-confirmed in %v", t.after)
}

// sendRawTransactionSync answers with the receipt as soon as the transaction is
// promised.
func sendRawTransactionSync(s *session, dst []byte, args *arguments) ([]byte, error) {
	tx := args.transaction()
	wait := args.wait()
	if err := args.done(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(s.ctx, wait)
	defer cancel()
	if err := s.api.config.Sequencer.Send(ctx, tx); err != nil {
		return nil, err
	}
	hash := tx.Hash()
	out, err := s.awaitReceipt(ctx, dst, hash)
	if errors.Is(err, context.DeadlineExceeded) {
		err = &timeout{hash, wait}
	}
	return out, err
}

// awaitReceipt looks at new snapshots until one has the receipt. The Sequencer
// says when it is promised; it shows once its flashblock came through the feed,
// which may lose it.
func (s *session) awaitReceipt(ctx context.Context, dst []byte, hash chain.Hash) ([]byte, error) {
	if err := s.api.config.Sequencer.WaitPreconfirmed(ctx, hash); err != nil {
		return nil, err
	}
	for {
		out, found, err := s.receiptNow(dst, hash)
		if found || err != nil {
			return out, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// receiptNow answers from the snapshot that is current now: the session's own
// is from before the transaction.
func (s *session) receiptNow(dst []byte, hash chain.Hash) (out []byte, found bool, err error) {
	now := &session{Snapshot: s.api.config.Acquire(), api: s.api, ctx: s.ctx, deadline: s.deadline}
	defer now.Release()
	b, index, ok, err := now.find(hash)
	if err != nil || !ok {
		return nil, false, err
	}
	receipt, err := newReceiptJSON(b, index)
	if err != nil {
		return nil, false, err
	}
	out, err = appendJSON(dst, receipt)
	return out, true, err
}

// wait takes an optional number of milliseconds.
func (a *arguments) wait() time.Duration {
	v, given := a.next()
	if !given {
		return syncTimeout
	}
	ms, why := parseCount(v)
	if why == "" && time.Duration(ms) > maxSyncTimeout/time.Millisecond {
		why = fmt.Sprintf("want at most %v", maxSyncTimeout)
	}
	if why != "" {
		a.refuse("timeout in milliseconds", why)
	}
	return time.Duration(ms) * time.Millisecond
}
