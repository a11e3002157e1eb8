// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"fmt"
	"slices"

	"glimpse/chain"
)

// maxStepBlocks is how many blocks may be removed and added in one Step. More
// than that is a node that catches up, where telling them one by one serves
// nobody, and it bounds what a Step costs.
const maxStepBlocks = 256

// A Step is the difference between two snapshots. It is good, with both, until
// the Topic that was given it returns.
type Step[S Snapshot] struct {
	Old, New S

	// Ancestor is the newest sealed block that both have.
	Ancestor chain.Ref

	// Removed are the blocks that only Old has, newest first; Added those that
	// only New has, oldest first.
	Removed, Added []chain.Ref

	watched map[chain.Address]int // whose storage is asked for; not modified
	storage map[chain.Address]*storage
	shared  map[any]outcome
}

// outcome is what a function returned. The value is a T of Shared.
type outcome struct {
	value any
	err   error
}

// Shared returns what make returned the first time that it was called with this
// key in this Step, so that subscribers to the same thing share the work and the
// memory. A key has a type of its own, and each one T.
func Shared[S Snapshot, T any](s *Step[S], key any, make func() (T, error)) (T, error) {
	if done, ok := s.shared[key]; ok {
		return done.value.(T), done.err
	}
	value, err := make()
	if s.shared == nil {
		s.shared = map[any]outcome{}
	}
	s.shared[key] = outcome{value, err}
	return value, err
}

// between returns the Step from old to next. The error is ErrGap where they are
// too far apart.
func between[S Snapshot](old, next S) (*Step[S], error) {
	s := &Step[S]{Old: old, New: next}
	from, to := old.Latest(), next.Latest()
	n := min(from.Number, to.Number)
	for {
		if (from.Number-n)+(to.Number-n) > maxStepBlocks {
			return nil, ErrGap
		}
		was, err := hashAt(old, n)
		if err != nil {
			return nil, err
		}
		is, err := hashAt(next, n)
		if err != nil {
			return nil, err
		}
		if was == is {
			s.Ancestor = chain.Ref{Number: n, Hash: was}
			break
		}
		if n == 0 {
			return nil, fmt.Errorf("%w: two snapshots without a common block", chain.ErrCorrupt)
		}
		n--
	}
	var err error
	if s.Removed, err = above(old, s.Ancestor.Number); err != nil {
		return nil, err
	}
	slices.Reverse(s.Removed)
	s.Added, err = above(next, s.Ancestor.Number)
	return s, err
}

// hashAt spares the usual case, the newest block, a read.
func hashAt[S Snapshot](s S, n chain.Number) (chain.Hash, error) {
	if latest := s.Latest(); latest.Number == n {
		return latest.Hash, nil
	}
	h, err := s.Hash(n)
	if err != nil {
		return h, fmt.Errorf("hash of block %d: %w", n, err)
	}
	return h, nil
}

// above returns the blocks of s above n, oldest first.
func above[S Snapshot](s S, n chain.Number) (refs []chain.Ref, err error) {
	for n++; n <= s.Latest().Number; n++ {
		h, err := hashAt(s, n)
		if err != nil {
			return nil, err
		}
		refs = append(refs, chain.Ref{Number: n, Hash: h})
	}
	return refs, nil
}

// load reads what the blocks of the Step changed, one after the other, and keeps
// what it says about the addresses that are watched.
func (s *Step[S]) load() error {
	if s.storage != nil {
		return nil
	}
	loaded := make(map[chain.Address]*storage)
	for _, b := range s.Removed {
		if err := eachWatched(s.Old, b.Number, s.watched, func(a *chain.AccountDiff) {
			of(loaded, a.Address).remove(a)
		}); err != nil {
			return err
		}
	}
	for i, b := range s.Added {
		if err := eachWatched(s.New, b.Number, s.watched, func(a *chain.AccountDiff) {
			of(loaded, a.Address).add(a, i)
		}); err != nil {
			return err
		}
	}
	s.storage = loaded
	return nil
}

func eachWatched[S Snapshot](from S, n chain.Number, watched map[chain.Address]int, use func(*chain.AccountDiff)) error {
	d, err := from.Diff(n)
	if miss := new(chain.Miss); errors.As(err, &miss) {
		return ErrGap
	}
	if err != nil {
		return fmt.Errorf("changes of block %d: %w", n, err)
	}
	for i := range d.Accounts {
		if a := &d.Accounts[i]; watched[a.Address] > 0 {
			use(a)
		}
	}
	return nil
}
