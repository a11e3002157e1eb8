// SPDX-License-Identifier: Apache-2.0

package devchain

import (
	"fmt"

	"glimpse/chain"
)

// open begins the block after the store's head.
func (s *Sequencer) open(replaces chain.Hash) error {
	s.close()
	head, err := s.options.Store.Head()
	if err != nil {
		return fmt.Errorf("open head: %w", err)
	}
	s.head = head
	if s.header == nil || s.header.Hash() != head.Hash {
		if s.header, err = s.headerAt(head.Number); err != nil {
			return err
		}
	}
	rules := s.options.Rules
	how := s.start(replaces)
	header, err := newHeader(rules, s.header, how)
	if err != nil {
		return err
	}
	if s.building, err = begin(rules, header, head.View, s.options.Store.Hash); err != nil {
		return err
	}
	s.building.payload = payloadID(head.Hash, how.at)
	s.next.Store(header)
	return nil
}

// close gives the head back.
func (s *Sequencer) close() {
	if s.head.Release != nil {
		s.head.Release()
	}
	s.head, s.building = Head{}, nil
}

// nextBlock opens the next block and announces its beginning.
func (s *Sequencer) nextBlock(replaces chain.Hash) error {
	if err := s.open(replaces); err != nil {
		return err
	}
	if !s.preconfirms() {
		return nil
	}
	return s.preconfirm()
}

// preconfirm executes what waits and announces it, also if that is nothing.
func (s *Sequencer) preconfirm() error {
	if err := s.fill(); err != nil {
		return err
	}
	f, err := s.building.flashblock()
	if err != nil {
		return err
	}
	s.options.Listener.Preconfirmed(f)
	for _, tx := range f.Transactions {
		s.waiters.resolve(tx.Hash(), nil)
	}
	return nil
}

// fill executes what waits, until the block is full or nothing more can be.
func (s *Sequencer) fill() error {
	order := s.pool.order(s.building.header.BaseFee)
	for e := order.pop(); e != nil; e = order.pop() {
		v, err := s.building.try(e)
		if err != nil {
			return err
		}
		switch v.outcome {
		case waits:
			continue // and all that follow of the same account with it
		case runs:
			s.pool.remove(e)
		case never:
			s.drop(e, v.reason)
		}
		order.push(s.pool.first(e.from))
	}
	return nil
}

// drop takes a transaction out of the pool that will not be executed.
func (s *Sequencer) drop(e *entry, reason error) {
	s.pool.remove(e)
	s.forget(e, reason)
}

// forget tells those who wait for a transaction that is not in the pool any more.
func (s *Sequencer) forget(e *entry, reason error) {
	hash := e.tx.Hash()
	delete(s.revoked, hash)
	s.waiters.resolve(hash, fmt.Errorf("%w: %w", ErrDropped, reason))
}

// sealNext seals the block being built and begins the next one.
func (s *Sequencer) sealNext() (*Sealed, error) {
	if !s.preconfirms() {
		// Nothing of the block was announced: date it now.
		if err := s.open(chain.Hash{}); err != nil {
			return nil, err
		}
		if err := s.fill(); err != nil {
			return nil, err
		}
	}
	sealed, err := s.commit()
	if err != nil {
		return nil, err
	}
	if err := s.setTags(sealed.Ref().Number); err != nil {
		return nil, err
	}
	s.options.Listener.Sealed(sealed)
	s.settled(sealed)
	return sealed, s.nextBlock(chain.Hash{})
}

// commit seals and stores the block being built, without those transactions that
// were revoked. It tells nobody.
func (s *Sequencer) commit() (*Sealed, error) {
	gone, err := s.applyRevocations()
	if err != nil {
		return nil, err
	}
	number := s.building.header.Number
	sealed, err := s.building.seal(s.options.Roots)
	if err != nil {
		return nil, fmt.Errorf("seal block %v: %w", number, err)
	}
	sealed.Revoked = gone
	s.close()
	if err := s.options.Store.Commit(sealed); err != nil {
		return nil, fmt.Errorf("commit block %v: %w", number, err)
	}
	s.header = sealed.Block.Header()
	return sealed, nil
}

// applyRevocations takes revoked transactions out of the block being built.
// Those that cannot follow without them wait again.
func (s *Sequencer) applyRevocations() (gone []chain.Hash, err error) {
	any := false
	for _, e := range s.building.entries {
		_, ok := s.revoked[e.tx.Hash()]
		any = any || ok
	}
	if !any {
		return nil, nil
	}
	rest, revoked, orphans, err := s.building.without(s.revoked)
	if err != nil {
		return nil, err
	}
	for _, e := range revoked {
		gone = append(gone, e.tx.Hash())
		delete(s.revoked, e.tx.Hash())
	}
	for _, e := range orphans {
		gone = append(gone, e.tx.Hash())
		s.restore(e)
	}
	s.building = rest
	return gone, nil
}

// restore puts a transaction that was in a block back into the pool.
func (s *Sequencer) restore(e *entry) {
	if !s.pool.restore(e) {
		s.forget(e, ErrPoolFull)
	}
}

// settled answers those who wait for a transaction that no flashblock announced,
// and remembers the block's transactions for those who ask a little later.
func (s *Sequencer) settled(sealed *Sealed) {
	hashes := make([]chain.Hash, 0, len(sealed.Block.Transactions()))
	for _, tx := range sealed.Block.Transactions() {
		hashes = append(hashes, tx.Hash())
		s.waiters.resolve(tx.Hash(), nil)
	}
	s.waiters.remember(hashes)
}

func (s *Sequencer) setTags(head chain.Number) error {
	behind := func(lag uint64) (chain.Ref, error) {
		n := head - min(head, chain.Number(lag))
		hash, err := s.options.Store.Hash(n)
		return chain.Ref{Number: n, Hash: hash}, err
	}
	safe, err := behind(s.options.SafeLag)
	if err != nil {
		return fmt.Errorf("safe block: %w", err)
	}
	finalized, err := behind(s.options.FinalizedLag)
	if err != nil {
		return fmt.Errorf("finalized block: %w", err)
	}
	if err := s.options.Store.SetTags(safe, finalized); err != nil {
		return fmt.Errorf("set tags: %w", err)
	}
	return nil
}
