// SPDX-License-Identifier: Apache-2.0

package devchain

import (
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/chain"
)

// maxReorg bounds the blocks of a reorg: their transactions are in memory
// together.
const maxReorg = 256

// Reorg replaces the last blocks, depth of them, by as many others. The first of
// those is empty; the transactions of the old ones, and those pre-confirmed for
// the block being built, wait again and are in the following ones as they fit.
// More than 256 blocks, or all with the genesis block, give ErrDepth. Safe and
// finalized blocks are replaced like others.
func (s *Sequencer) Reorg(ctx context.Context, depth int) (r *Reorganisation, err error) {
	err = s.do(ctx, func() error {
		if depth < 1 || depth > maxReorg || chain.Number(depth) > s.head.Number {
			return fmt.Errorf("%w: %d, the head is %d", ErrDepth, depth, s.head.Number)
		}
		var err error
		r, err = s.reorganise(chain.Number(depth))
		s.fail(err)
		s.clock.restart(time.Now())
		return err
	})
	return r, err
}

func (s *Sequencer) reorganise(depth chain.Number) (*Reorganisation, error) {
	r := new(Reorganisation)
	ancestor := s.head.Number - depth
	again, err := s.removed(r, ancestor)
	if err != nil {
		return nil, err
	}
	again = append(again, s.building.entries...)
	s.close()
	if err := s.options.Store.Unwind(ancestor); err != nil {
		return nil, fmt.Errorf("unwind to block %d: %w", ancestor, err)
	}
	for _, e := range again {
		s.restore(e)
	}
	s.waiters.recent = nil
	replaces := r.Removed[0].Hash
	for range depth {
		sealed, err := s.replacement(replaces)
		if err != nil {
			return nil, err
		}
		r.Added = append(r.Added, sealed)
		replaces = chain.Hash{}
	}
	if err := s.setTags(ancestor + depth); err != nil {
		return nil, err
	}
	s.options.Listener.Reorganised(r)
	for _, sealed := range r.Added {
		s.settled(sealed)
	}
	return r, s.nextBlock(chain.Hash{})
}

// removed reads the blocks that are about to go, and returns their transactions
// in order.
func (s *Sequencer) removed(r *Reorganisation, ancestor chain.Number) (entries []*entry, err error) {
	signer := s.options.Rules.Signer(s.building.header)
	for n := ancestor; n <= s.head.Number; n++ {
		hash, err := s.options.Store.Hash(n)
		if err != nil {
			return nil, fmt.Errorf("hash of block %d: %w", n, err)
		}
		if n == ancestor {
			r.Ancestor = chain.Ref{Number: n, Hash: hash}
			continue
		}
		r.Removed = append(r.Removed, chain.Ref{Number: n, Hash: hash})
		raw, err := s.options.Store.Body(n)
		if err != nil {
			return nil, fmt.Errorf("body of block %d: %w", n, err)
		}
		body := new(types.Body)
		if err := rlp.DecodeBytes(raw, body); err != nil {
			return nil, fmt.Errorf("body of block %d: %w: %w", n, chain.ErrCorrupt, err)
		}
		for _, tx := range body.Transactions {
			from, err := types.Sender(signer, tx)
			if err != nil {
				return nil, fmt.Errorf("sender of %s in block %d: %w: %w", tx.Hash(), n, chain.ErrCorrupt, err)
			}
			entries = append(entries, newEntry(tx, from))
		}
	}
	return entries, nil
}

// replacement seals one block: an empty one in place of another, or one of what
// waits where replaces is zero.
func (s *Sequencer) replacement(replaces chain.Hash) (*Sealed, error) {
	if err := s.open(replaces); err != nil {
		return nil, err
	}
	if replaces == (chain.Hash{}) {
		if err := s.fill(); err != nil {
			return nil, err
		}
	}
	return s.commit()
}
