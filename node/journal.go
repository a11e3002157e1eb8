// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"sync"

	"glimpse/archive"
	"glimpse/chain"
	"glimpse/replica"
	"glimpse/replica/stream"
)

// A journal is the store as this node's own readers see it, from which replicas are
// told. It is not the store as it is: that may be in the middle of a
// reorganisation, and replicas show what they are told (P6).
type journal struct {
	mu      sync.Mutex
	current *archive.Reader // guarded by mu; nil before the first and after close
}

var _ stream.Journal = (*journal)(nil)

// show makes r what replicas are told, and reports whether its head or its tags are
// others than before. The caller keeps its reference.
func (j *journal) show(r *archive.Reader) (changed bool) {
	r.Retain() // it succeeds: the caller holds it
	j.mu.Lock()
	before := j.current
	j.current = r
	j.mu.Unlock()
	if before == nil {
		return true
	}
	defer before.Release()
	return before.Head() != r.Head() || !sameMarks(marksOf(before), marksOf(r))
}

func (j *journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.current != nil {
		j.current.Release()
		j.current = nil
	}
}

// Open implements stream.Journal.
func (j *journal) Open() (stream.Chain, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.current == nil || !j.current.Retain() {
		return nil, errors.New("nothing is published here yet")
	}
	return journalChain{j.current}, nil
}

// A journalChain is what replicas are told at one moment.
type journalChain struct{ *archive.Reader }

// Marks implements stream.Chain.
func (c journalChain) Marks() replica.Marks { return marksOf(c.Reader) }

func marksOf(r *archive.Reader) (m replica.Marks) {
	if ref, ok := r.Safe(); ok {
		m.Safe = &ref
	}
	if ref, ok := r.Finalized(); ok {
		m.Finalized = &ref
	}
	return m
}

func sameMarks(a, b replica.Marks) bool {
	same := func(a, b *chain.Ref) bool { return a == b || a != nil && b != nil && *a == *b }
	return same(a.Safe, b.Safe) && same(a.Finalized, b.Finalized)
}

// Sealed implements stream.Chain.
func (c journalChain) Sealed(n chain.Number) (*replica.Sealed, error) {
	s := &replica.Sealed{Ref: chain.Ref{Number: n}}
	var digest archive.Digest
	for _, read := range []func() error{
		func() (err error) { s.Hash, err = c.Hash(n); return err },
		func() (err error) { s.Parent, err = c.Hash(n - 1); return err },
		func() (err error) { s.Header, err = c.Header(n); return err },
		func() (err error) { s.Body, err = c.Body(n); return err },
		func() (err error) { s.Transactions, err = c.Transactions(n); return err },
		func() (err error) { s.Receipts, err = c.Receipts(n); return err },
		func() (err error) { s.Diff, err = c.Diff(n); return err },
		func() (err error) { digest, err = c.Digest(n); return err },
	} {
		if err := read(); err != nil {
			return nil, fmt.Errorf("block %d for replicas: %w", n, err)
		}
	}
	s.Digest = replica.Digest(digest)
	return s, nil
}
