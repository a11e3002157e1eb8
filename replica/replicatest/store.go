// SPDX-License-Identifier: Apache-2.0

package replicatest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"glimpse/chain"
	"glimpse/replica"
)

// ErrBroken is what a Store returns for calls that are told to fail.
var ErrBroken = errors.New("broken on purpose")

// A Shown is what readers of a Store see.
type Shown struct {
	Head    chain.Ref
	Digest  replica.Digest
	Overlay *replica.Overlay // nil where nothing is pre-confirmed
	Until   time.Time
	Marks   replica.Marks
}

// A Store is the store of a replica. It is safe for concurrent use, and
// implements replica.Store.
type Store struct {
	// Fail is asked before each write, where it is not nil.
	Fail func(call string) error

	// OnPublish is told what readers see, whenever that changes.
	OnPublish func(Shown)

	mu     sync.Mutex
	blocks []*replica.Sealed
	marks  replica.Marks
	facts  []*chain.Facts
	shown  Shown
	writes int
}

var _ replica.Store = (*Store)(nil)

// NewStore returns a copy of the Writer's blocks up to n, as a snapshot would be.
func NewStore(w *Writer, n chain.Number) *Store {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &Store{blocks: slices.Clone(w.blocks[:n+1])}
	s.shown = Shown{Head: s.head().Ref, Digest: s.head().Digest}
	return s
}

func (s *Store) head() *replica.Sealed { return s.blocks[len(s.blocks)-1] }

// Restarted returns the store as it is after a restart: what is in it stays, what
// readers see is what is in it.
func (s *Store) Restarted() *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := &Store{blocks: slices.Clone(s.blocks), marks: s.marks, facts: s.facts}
	next.shown = Shown{Head: s.head().Ref, Digest: s.head().Digest}
	return next
}

// Shown returns what readers see.
func (s *Store) Shown() Shown {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown
}

// Writes returns how many writes there were.
func (s *Store) Writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// Facts returns what was kept.
func (s *Store) Facts() []*chain.Facts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.facts
}

// Damage makes the digest of the newest block another.
func (s *Store) Damage() {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := *s.head()
	b.Digest[0] ^= 1
	s.blocks[len(s.blocks)-1] = &b
}

// Head implements replica.Store.
func (s *Store) Head() (chain.Ref, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head().Ref, nil
}

// Hash implements replica.Store.
func (s *Store) Hash(n chain.Number) (chain.Hash, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n >= chain.Number(len(s.blocks)) {
		return chain.Hash{}, &chain.Miss{Reason: chain.Future}
	}
	return s.blocks[n].Hash, nil
}

// Digest implements replica.Store.
func (s *Store) Digest(n chain.Number) (replica.Digest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blocks[n].Digest, nil
}

func (s *Store) write(call string) error {
	s.writes++
	if s.Fail != nil {
		return s.Fail(call)
	}
	return nil
}

// Commit implements replica.Store.
func (s *Store) Commit(b *replica.Sealed) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.write("commit"); err != nil {
		return err
	}
	if b.Parent != s.head().Hash || b.Number != s.head().Number+1 {
		return fmt.Errorf("block %s does not follow %s", b.Ref, s.head().Ref)
	}
	if NextDigest(s.head().Digest, b) != b.Digest {
		return fmt.Errorf("%w: digest of %s", replica.ErrMismatch, b.Ref)
	}
	s.blocks = append(slices.Clip(s.blocks), b)
	return nil
}

// Unwind implements replica.Store.
func (s *Store) Unwind(to chain.Number) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.write("unwind"); err != nil {
		return err
	}
	if to >= chain.Number(len(s.blocks)) {
		return fmt.Errorf("unwind to %d above %s", to, s.head().Ref)
	}
	s.blocks = slices.Clip(s.blocks[:to+1])
	return nil
}

// SetTags implements replica.Store.
func (s *Store) SetTags(m replica.Marks) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.write("tags"); err != nil {
		return err
	}
	for _, r := range []*chain.Ref{m.Safe, m.Finalized} {
		if r != nil && (r.Number > s.head().Number || s.blocks[r.Number].Hash != r.Hash) {
			return fmt.Errorf("tag %s is not on the chain", r)
		}
	}
	s.marks = m
	return nil
}

// KeepFacts implements replica.Store.
func (s *Store) KeepFacts(f *chain.Facts) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.facts = append(s.facts, f)
	return s.write("facts")
}

// Publish implements replica.Store.
func (s *Store) Publish(o *replica.Overlay, goodUntil time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.write("publish"); err != nil {
		return err
	}
	s.shown = Shown{Head: s.head().Ref, Digest: s.head().Digest, Overlay: o, Until: goodUntil, Marks: s.marks}
	s.tell()
	return nil
}

// Withdraw implements replica.Store.
func (s *Store) Withdraw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown.Overlay = nil
	s.tell()
}

func (s *Store) tell() {
	if s.OnPublish != nil {
		s.OnPublish(s.shown)
	}
}

// Equal reports whether two overlays say the same, to the last byte.
func Equal(a, b *replica.Overlay) bool { return bytes.Equal(Bytes(a), Bytes(b)) }

// Bytes is an overlay in one form; nil where nothing is pre-confirmed.
func Bytes(o *replica.Overlay) []byte {
	if o == nil || len(o.Blocks) == 0 {
		return nil
	}
	data, err := replica.AppendEvent(nil, &replica.Event{Body: &replica.Pending{Parent: o.Parent, Blocks: o.Parts()}})
	if err != nil {
		panic(err) // overlays of a Writer can be encoded
	}
	return data
}
