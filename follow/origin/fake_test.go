// SPDX-License-Identifier: Apache-2.0

package origin_test

import (
	"context"
	"errors"
	"slices"
	"sync"

	"glimpse/chain"
	"glimpse/follow/origin"
)

var (
	first = chain.Ref{Number: 100, Hash: chain.Hash{0: 1, 31: 100}}
	held  = chain.Ref{Number: 105, Hash: chain.Hash{0: 1, 31: 105}}

	errDown = errors.New("upstream is down")
)

// A fakeSource is an upstream whose slots hold their block's hash mixed with
// their key, so that an answer of another block, or for another key, is seen.
type fakeSource struct {
	mu       sync.Mutex
	calls    []string    // kind of each
	at       []chain.Ref // of each
	sizes    []int       // of each
	down     error
	lost     map[chain.Ref]error // blocks that it cannot answer for
	hold     chan struct{}       // calls wait until it is closed, where it is not nil
	busy     int
	mostBusy int
	extra    int // how many values too many
	accounts map[chain.Address]origin.Account
	codes    map[chain.Address][]byte
	blocks   map[chain.Selector]chain.Ref
}

func (s *fakeSource) begin(ctx context.Context, kind string, at chain.Ref, size int) error {
	s.mu.Lock()
	s.calls, s.at, s.sizes = append(s.calls, kind), append(s.at, at), append(s.sizes, size)
	s.busy++
	s.mostBusy = max(s.mostBusy, s.busy)
	hold, err := s.hold, s.down
	if err == nil {
		err = s.lost[at]
	}
	s.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	s.mu.Lock()
	s.busy--
	s.mu.Unlock()
	return err
}

// count returns how many calls of a kind there were.
func (s *fakeSource) count(kind string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.calls {
		if k == kind {
			n++
		}
	}
	return n
}

func (s *fakeSource) asked() []chain.Ref {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.at)
}

func (s *fakeSource) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// valueOf is what a slot holds at a block. From first to held nothing changes.
func valueOf(at chain.Ref, k origin.Key) (v chain.Value) {
	if at == held {
		at = first
	}
	v = at.Hash
	for i := range k.Slot {
		v[i] ^= k.Slot[i]
	}
	for i := range k.Address {
		v[i] ^= k.Address[i]
	}
	return v
}

func (s *fakeSource) Slots(ctx context.Context, at chain.Ref, keys []origin.Key) ([]chain.Value, error) {
	if err := s.begin(ctx, "slots", at, len(keys)); err != nil {
		return nil, err
	}
	values := make([]chain.Value, len(keys)+s.extra)
	for i := range min(len(keys), len(values)) {
		values[i] = valueOf(at, keys[i])
	}
	return values, nil
}

func (s *fakeSource) Accounts(ctx context.Context, at chain.Ref, addresses []chain.Address) ([]origin.Account, error) {
	if err := s.begin(ctx, "accounts", at, len(addresses)); err != nil {
		return nil, err
	}
	accounts := make([]origin.Account, len(addresses)+s.extra)
	for i, a := range addresses {
		accounts[i] = s.accounts[a]
	}
	return accounts, nil
}

func (s *fakeSource) Codes(ctx context.Context, at chain.Ref, keys []origin.CodeKey) ([][]byte, error) {
	if err := s.begin(ctx, "codes", at, len(keys)); err != nil {
		return nil, err
	}
	codes := make([][]byte, len(keys)+s.extra)
	for i, k := range keys {
		codes[i] = s.codes[k.Address]
	}
	return codes, nil
}

func (s *fakeSource) Block(ctx context.Context, sel chain.Selector) (chain.Ref, error) {
	if err := s.begin(ctx, "block", chain.Ref{}, 1); err != nil {
		return chain.Ref{}, err
	}
	ref, ok := s.blocks[sel]
	if !ok {
		return chain.Ref{}, &chain.Miss{Reason: chain.UnknownHash}
	}
	return ref, nil
}

// A fakeKeeper is a store that knows only what it was told, and the Base of all
// blocks.
type fakeKeeper struct {
	mu       sync.Mutex
	accounts map[chain.Address]chain.Account
	slots    map[origin.Key]chain.Value
	codes    map[chain.Hash][]byte
	broken   error
}

func newKeeper() *fakeKeeper {
	return &fakeKeeper{
		accounts: make(map[chain.Address]chain.Account),
		slots:    make(map[origin.Key]chain.Value),
		codes:    make(map[chain.Hash][]byte),
	}
}

func (k *fakeKeeper) KeepOrigin(f *chain.Facts) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.broken != nil {
		return k.broken
	}
	for _, c := range f.Codes {
		k.codes[c.Hash] = c.Bytes
	}
	for _, a := range f.Accounts {
		if h := a.Account.CodeHash; h != (chain.Hash{}) && k.codes[h] == nil {
			return errors.New("account without its code")
		}
		k.accounts[a.Address] = a.Account
	}
	for _, s := range f.Slots {
		k.slots[origin.Key{Address: s.Address, Slot: s.Slot}] = s.Value
	}
	return nil
}

func (k *fakeKeeper) HasCode(h chain.Hash) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.codes[h] != nil, k.broken
}

func (k *fakeKeeper) Slot(a chain.Address, s chain.Slot) (chain.Value, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	v, ok := k.slots[origin.Key{Address: a, Slot: s}]
	if !ok {
		return chain.Value{}, chain.ErrUnknown
	}
	return v, nil
}

func (k *fakeKeeper) Account(a chain.Address) (chain.Account, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	account, ok := k.accounts[a]
	if !ok {
		return chain.Account{}, chain.ErrUnknown
	}
	return account, nil
}

func (k *fakeKeeper) Code(h chain.Hash) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.codes[h], nil
}

func (k *fakeKeeper) SlotHeldUntil(chain.Address, chain.Slot) (chain.Ref, error) { return held, nil }
func (k *fakeKeeper) AccountHeldUntil(chain.Address) (chain.Ref, error)          { return held, nil }
