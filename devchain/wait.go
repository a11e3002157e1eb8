// SPDX-License-Identifier: Apache-2.0

package devchain

import (
	"context"
	"slices"

	"glimpse/chain"
)

// maxWaiters bounds how many callers wait at once, recentBlocks for how many
// blocks a transaction that was sealed is still known to be.
const (
	maxWaiters   = 4096
	recentBlocks = 16
)

// waiters are those who wait for a transaction to be pre-confirmed. They belong
// to the owner.
type waiters struct {
	byHash map[chain.Hash][]chan error // each has room for its one answer
	count  int
	recent [][]chain.Hash // of the last sealed blocks
}

func newWaiters() waiters { return waiters{byHash: make(map[chain.Hash][]chan error)} }

func (w *waiters) add(hash chain.Hash, answer chan error) error {
	if w.count >= maxWaiters {
		return ErrBusy
	}
	w.byHash[hash] = append(w.byHash[hash], answer)
	w.count++
	return nil
}

func (w *waiters) resolve(hash chain.Hash, result error) {
	for _, answer := range w.byHash[hash] {
		answer <- result
	}
	w.count -= len(w.byHash[hash])
	delete(w.byHash, hash)
}

func (w *waiters) cancel(hash chain.Hash, answer chan error) {
	list := w.byHash[hash]
	at := slices.Index(list, answer)
	if at < 0 {
		return
	}
	w.count--
	if list = slices.Delete(list, at, at+1); len(list) == 0 {
		delete(w.byHash, hash)
	} else {
		w.byHash[hash] = list
	}
}

func (w *waiters) remember(hashes []chain.Hash) {
	if len(w.recent) == recentBlocks {
		w.recent = slices.Delete(w.recent, 0, 1)
	}
	w.recent = append(w.recent, hashes)
}

func (w *waiters) sealedLately(hash chain.Hash) bool {
	return slices.ContainsFunc(w.recent, func(block []chain.Hash) bool { return slices.Contains(block, hash) })
}

// WaitPreconfirmed returns when a transaction has been pre-confirmed, or sealed
// where there are no flashblocks, and the Listener has seen it; at once where
// that was within the last few blocks. The error is ctx's when that ends before,
// wraps ErrDropped where the transaction leaves the pool otherwise, and is
// ErrUnknownTransaction where it neither waits nor was seen.
func (s *Sequencer) WaitPreconfirmed(ctx context.Context, hash chain.Hash) error {
	answer := make(chan error, 1)
	err := s.do(ctx, func() error {
		switch {
		case s.pool.byHash[hash] != nil:
			return s.waiters.add(hash, answer)
		case s.building.has(hash) || s.waiters.sealedLately(hash):
			answer <- nil
			return nil
		}
		return ErrUnknownTransaction
	})
	if err != nil {
		return err
	}
	select {
	case err := <-answer:
		return err
	case <-s.ended:
		return ErrStopped
	case <-ctx.Done():
		// The owner answers at once or has stopped; ctx has no more say.
		_ = s.do(context.WithoutCancel(ctx), func() error { s.waiters.cancel(hash, answer); return nil })
		return ctx.Err()
	}
}
