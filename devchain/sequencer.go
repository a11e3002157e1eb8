// SPDX-License-Identifier: Apache-2.0

package devchain

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/chain"
	"glimpse/evm"
)

// Options are what a Sequencer is made of. Rules, Store, Roots and BlockTime are
// required.
type Options struct {
	Rules *evm.Rules
	Store Store
	Roots Roots

	// BlockTime is how long a block is built, FlashblockTime how long after one
	// flashblock the next comes: 0 for none, otherwise less than BlockTime.
	BlockTime      time.Duration
	FlashblockTime time.Duration

	Coinbase chain.Address
	Limits   Limits

	// SafeLag and FinalizedLag are how many blocks behind the head the safe and
	// the finalized block are. Until there are as many, they are block 0.
	SafeLag, FinalizedLag uint64

	Listener Listener // nil where nobody listens
}

func (o *Options) validate() error {
	switch {
	case o.Rules == nil || o.Store == nil || o.Roots == nil:
		return errors.New("a chain needs rules, a store and roots")
	case o.BlockTime <= 0:
		return fmt.Errorf("block time %v: want more than 0", o.BlockTime)
	case o.FlashblockTime < 0 || o.FlashblockTime >= o.BlockTime:
		return fmt.Errorf("flashblock time %v: want 0, or less than the block time %v", o.FlashblockTime, o.BlockTime)
	case o.FinalizedLag < o.SafeLag:
		return fmt.Errorf("finalized block %d behind the head, less than the safe one's %d", o.FinalizedLag, o.SafeLag)
	}
	return nil
}

// A Sequencer makes the chain. Its methods are safe for concurrent use and, but
// for Run, wait until Run runs.
type Sequencer struct {
	options Options
	minTip  *big.Int

	// next is the header of the block being built, for what is checked before
	// the owner is asked.
	next atomic.Pointer[types.Header]

	// commands carries what the owner, the goroutine of Run, is asked to do. It
	// is not buffered: whoever asks waits for the answer anyway.
	commands chan func()
	ended    chan struct{} // closed when Run returns

	// All that follows belongs to the owner.
	pool     *pool
	revoked  map[chain.Hash]struct{} // transactions that wait or are in building
	waiters  waiters
	head     Head          // what building stands on
	header   *types.Header // of head
	building *building
	clock    clock
	err      error // what ends Run
}

// New returns a Sequencer for the chain in a store. Chains from before the merge,
// or past forks whose rules are not known here, give evm.ErrUnsupported.
func New(o Options) (*Sequencer, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.Listener == nil {
		o.Listener = nobody{}
	}
	o.Limits = o.Limits.withDefaults()
	s := &Sequencer{
		options:  o,
		minTip:   new(big.Int).SetUint64(o.Limits.MinTip),
		commands: make(chan func()),
		ended:    make(chan struct{}),
		pool:     newPool(o.Limits),
		revoked:  make(map[chain.Hash]struct{}),
		waiters:  newWaiters(),
		clock:    clock{blockTime: o.BlockTime, flashblockTime: o.FlashblockTime},
	}
	head, err := o.Store.Head()
	if err != nil {
		return nil, fmt.Errorf("open head: %w", err)
	}
	head.Release()
	parent, err := s.headerAt(head.Number)
	if err != nil {
		return nil, err
	}
	next, err := newHeader(o.Rules, parent, s.start(chain.Hash{}))
	if err != nil {
		return nil, err
	}
	s.next.Store(next)
	return s, nil
}

// Run makes blocks on the store's head until ctx ends, and then returns nil. What
// was pre-confirmed and not sealed by then is not kept. It may be called once.
func (s *Sequencer) Run(ctx context.Context) error {
	defer close(s.ended)
	defer s.close()
	s.fail(s.nextBlock(chain.Hash{}))
	s.clock.restart(time.Now())
	timer := time.NewTimer(0)
	defer timer.Stop()
	for s.err == nil {
		if at, ok := s.clock.next(); ok {
			timer.Reset(time.Until(at))
		} else {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			return nil
		case command := <-s.commands:
			command()
		case <-timer.C:
			s.tick(time.Now())
		}
	}
	return s.err
}

// tick does what is due.
func (s *Sequencer) tick(now time.Time) {
	switch s.clock.due(now) {
	case sealing:
		_, err := s.sealNext()
		s.fail(err)
		s.clock.sealed(now)
	case preconfirming:
		s.fail(s.preconfirm())
		s.clock.preconfirmed(now)
	}
}

// fail notes an error after which the chain cannot go on.
func (s *Sequencer) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

func (s *Sequencer) preconfirms() bool { return s.options.FlashblockTime > 0 }

func (s *Sequencer) start(replaces chain.Hash) start {
	return start{coinbase: s.options.Coinbase, at: time.Now(), replaces: replaces}
}

func (s *Sequencer) headerAt(n chain.Number) (*types.Header, error) {
	raw, err := s.options.Store.Header(n)
	if err != nil {
		return nil, fmt.Errorf("header of block %d: %w", n, err)
	}
	header := new(types.Header)
	if err := rlp.DecodeBytes(raw, header); err != nil {
		return nil, fmt.Errorf("header of block %d: %w: %w", n, chain.ErrCorrupt, err)
	}
	return header, nil
}

type nobody struct{}

func (nobody) Preconfirmed(*Flashblock) {}

func (nobody) Sealed(*Sealed) {}

func (nobody) Reorganised(*Reorganisation) {}
