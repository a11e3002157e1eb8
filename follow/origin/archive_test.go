// SPDX-License-Identifier: Apache-2.0

package origin_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"glimpse/archive"
	"glimpse/archive/archivetest"
	"glimpse/chain"
	"glimpse/follow/origin"
)

// A modelSource is an upstream that has every block of a model, or lately only
// the last few, and fails now and then.
type modelSource struct {
	mu     sync.Mutex
	rng    *rand.Rand
	world  archivetest.World
	model  *archivetest.Model
	oldest chain.Number
	fails  bool
}

var errNow = errors.New("not now")

func (s *modelSource) at(ref chain.Ref) (archivetest.State, error) {
	switch {
	case s.fails && s.rng.IntN(4) == 0:
		return archivetest.State{}, errNow
	case int(ref.Number) >= len(s.model.Blocks) || s.model.Blocks[ref.Number].Ref != ref:
		return archivetest.State{}, &chain.Miss{Reason: chain.UnknownHash}
	case ref.Number < s.oldest:
		return archivetest.State{}, &chain.Miss{Reason: chain.Pruned}
	}
	return s.model.Blocks[ref.Number].State, nil
}

func (s *modelSource) Slots(_ context.Context, at chain.Ref, keys []origin.Key) (values []chain.Value, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, err := s.at(at)
	for _, k := range keys {
		values = append(values, state.Slots[archivetest.SlotKey{Address: k.Address, Slot: k.Slot}])
	}
	return values, err
}

func (s *modelSource) Accounts(_ context.Context, at chain.Ref, addresses []chain.Address) (accounts []origin.Account, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, err := s.at(at)
	for _, a := range addresses {
		account := origin.Account{Account: state.Accounts[a]}
		if s.rng.IntN(2) == 0 {
			account.Code = s.world.Code(account.CodeHash)
		}
		accounts = append(accounts, account)
	}
	return accounts, err
}

func (s *modelSource) Codes(_ context.Context, at chain.Ref, keys []origin.CodeKey) (codes [][]byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err = s.at(at)
	for _, k := range keys {
		codes = append(codes, s.world.Code(k.Hash))
	}
	return codes, err
}

// A followed is a sparse archive, its Origin and what it should read as.
type followed struct {
	t      *testing.T
	rng    *rand.Rand
	world  archivetest.World
	model  *archivetest.Model
	source *modelSource
	db     *archive.DB
	origin *origin.Origin
}

// Every read of a sparse store through an Origin equals that of the whole state,
// at every block and through reorganisations, whether or not the upstream still
// has the first block; and a failed read is an error.
func TestFollowedStoreReadsAsAWholeOne(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			f := newFollowed(t, seed)
			f.source.fails = seed%2 == 0
			for range 40 {
				f.step()
			}
			f.source.fails = false
			f.compare(len(f.world.Addresses) * len(f.world.Slots) * 5)
		})
	}
}

func newFollowed(t *testing.T, seed uint64) *followed {
	f := &followed{t: t, rng: rand.New(rand.NewPCG(seed, 0)), world: archivetest.NewWorld(5)}
	id, genesis := f.world.Genesis(f.rng)
	f.model = archivetest.NewModel(id, genesis)
	for range 3 {
		f.model.Commit(f.world.Block(f.rng, f.model))
	}
	var err error
	if f.db, err = archive.Open("", archive.Options{CacheBytes: 4 << 20}); err != nil {
		t.Fatal(err)
	}
	if err := f.db.InitAt(id, f.model.BeginAtHead()); err != nil {
		t.Fatal(err)
	}
	f.source = &modelSource{rng: rand.New(rand.NewPCG(seed, 1)), world: f.world, model: f.model}
	f.origin = origin.New(f.model.Head(), f.source, f.db, origin.Options{})
	t.Cleanup(func() {
		f.origin.Close()
		if _, err := f.db.Check(context.Background(), nil); err != nil {
			t.Error(err)
		}
		if err := f.db.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func (f *followed) step() {
	f.t.Helper()
	f.source.mu.Lock()
	head := f.model.Head().Number
	switch f.rng.IntN(8) {
	case 0:
		to := f.model.First + chain.Number(f.rng.Uint64N(uint64(head-f.model.First)+1))
		f.must(f.db.Unwind(to, nil))
		f.model.Unwind(to, nil)
		f.source.oldest = min(f.source.oldest, to)
	case 1:
		f.source.oldest = max(head, 2) - 2
	case 2, 3, 4:
		f.commit()
	}
	f.source.mu.Unlock()
	f.compare(3)
}

// commit adds a block. It brings all codes, as it may know them from an account
// that nobody read here.
func (f *followed) commit() {
	b := f.world.Block(f.rng, f.model)
	b.Diff.Codes = nil
	for _, c := range f.world.Codes {
		for _, a := range b.Diff.Accounts {
			if a.Account.CodeHash == c.Hash {
				b.Diff.Codes = append(b.Diff.Codes, c)
				break
			}
		}
	}
	b.Diff.Sort()
	f.must(f.db.CommitUnsynced(b))
	f.model.Commit(b)
}

func (f *followed) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// compare reads random keys at random blocks, several at once.
func (f *followed) compare(reads int) {
	f.t.Helper()
	r, err := f.db.NewReader()
	f.must(err)
	defer r.Release()
	var all sync.WaitGroup
	for range reads {
		n := f.model.First + chain.Number(f.rng.Uint64N(uint64(f.model.Head().Number-f.model.First)+1))
		a := f.world.Addresses[f.rng.IntN(len(f.world.Addresses))]
		s := f.world.Slots[f.rng.IntN(len(f.world.Slots))]
		base, err := r.At(n)
		f.must(err)
		v := f.origin.View(base)
		all.Go(func() { f.slot(v, n, a, s) })
		all.Go(func() { f.account(v, n, a) })
	}
	all.Wait()
}

// failed reports whether a read failed as it may: because the upstream failed,
// or has pruned every block at which the key is as it was at the first.
func (f *followed) failed(err error) bool {
	if err == nil {
		return false
	}
	if !errors.Is(err, origin.ErrFetch) {
		f.t.Errorf("read: got %v, want ErrFetch", err)
	}
	if !f.source.fails && f.source.oldest <= f.model.First {
		f.t.Errorf("read of an upstream that has everything: got %v, want none", err)
	}
	return true
}

func (f *followed) slot(v chain.View, n chain.Number, a chain.Address, s chain.Slot) {
	got, err := v.Slot(a, s)
	if f.failed(err) {
		return
	}
	if want := f.model.Blocks[n].State.Slots[archivetest.SlotKey{Address: a, Slot: s}]; got != want {
		f.t.Errorf("slot %s of %s at %d: got %s, want %s", s, a, n, got, want)
	}
}

func (f *followed) account(v chain.View, n chain.Number, a chain.Address) {
	got, err := v.Account(a)
	if f.failed(err) {
		return
	}
	if want := f.model.Blocks[n].State.Accounts[a]; got != want {
		f.t.Errorf("account %s at %d: got %v, want %v", a, n, got, want)
	}
	code, err := v.Code(got.CodeHash)
	if want := f.world.Code(got.CodeHash); err != nil || string(code) != string(want) {
		f.t.Errorf("code of %s at %d: got %x, %v, want %x", a, n, code, err, want)
	}
}
