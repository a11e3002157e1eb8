// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"glimpse/chain"
)

// A Reader is the store at one moment. It keeps answering from that moment
// whatever is committed, unwound or pruned later (A4).
//
// A Reader is counted: whoever got it from NewReader, or from a Retain that
// returned true, calls Release once. Nothing may be read from it, nor from the
// Views it gave, after that. It is safe for concurrent use, and its reads wait
// for no writer (P4).
type Reader struct {
	db       *DB
	snapshot *pebble.Snapshot
	heads    heads
	refs     atomic.Int64
	idle     cursorPool
}

// newReader returns the store as it is now with one reference. The caller is
// the only writer, and heads is what it wrote last.
func newReader(db *DB, h heads) *Reader {
	r := &Reader{db: db, snapshot: db.pebble.NewSnapshot(), heads: h}
	r.refs.Store(1)
	db.readers.Add(1)
	return r
}

// Retain adds a reference and reports true, or reports false if the last one
// was released already.
func (r *Reader) Retain() bool {
	for {
		n := r.refs.Load()
		if n <= 0 {
			return false
		}
		if r.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release gives a reference back. The last one frees what the Reader holds.
func (r *Reader) Release() {
	switch n := r.refs.Add(-1); {
	case n < 0:
		panic("archive: Reader released more often than it was retained")
	case n == 0:
		r.free()
	}
}

func (r *Reader) free() {
	for c := r.idle.take(); c != nil; c = r.idle.take() {
		_ = c.iter.Close() // repeats errors that its reads returned
	}
	_ = r.snapshot.Close() // fails only in a closed DB, and none closes under a Reader
	r.db.readers.Add(-1)
}

// Head returns the newest block.
func (r *Reader) Head() chain.Ref { return r.heads.head }

// Oldest returns the oldest block whose state is here.
func (r *Reader) Oldest() chain.Number { return r.heads.oldest }

// First returns the block that the store begins with. Sparse says that the
// state of that block is not here but for what KeepOrigin was told; otherwise
// it is genesis.
func (r *Reader) First() (n chain.Number, sparse bool) { return r.heads.first, r.heads.sparse }

// Safe and Finalized return the blocks set with SetTags; ok is false while
// there is none.
func (r *Reader) Safe() (ref chain.Ref, ok bool)      { return r.heads.safe.get() }
func (r *Reader) Finalized() (ref chain.Ref, ok bool) { return r.heads.finalized.get() }

// Identity returns which chain this is. Its Config is shared and must not be
// modified.
func (r *Reader) Identity() Identity { return r.heads.identity }

// take returns a cursor for one read; give takes it back.
func (r *Reader) take() (*cursor, error) {
	if c := r.idle.take(); c != nil {
		return c, nil
	}
	iter, err := r.snapshot.NewIter(&pebble.IterOptions{
		KeyTypes:     pebble.IterKeyTypePointsOnly,
		UseL6Filters: true,
	})
	if err != nil {
		return nil, storeError(err)
	}
	return &cursor{iter: iter, key: make([]byte, 0, slotStem+numberSize)}, nil
}

// give keeps c for the next read, unless the last one failed: what an iterator
// does after an error is not worth knowing. Not to know is no failure.
func (r *Reader) give(c *cursor, failed error) {
	if failed != nil && failed != chain.ErrUnknown || !r.idle.put(c) {
		_ = c.iter.Close() // repeats errors that its reads returned
	}
}

// read runs one read with a cursor. Reads that must not allocate take and give
// for themselves, because their closures would escape.
func (r *Reader) read(f func(*cursor) error) error {
	c, err := r.take()
	if err != nil {
		return err
	}
	err = f(c)
	r.give(c, err)
	return err
}

// scan returns an iterator over the keys from lower up to but without upper.
func (r *Reader) scan(lower, upper []byte) (*pebble.Iterator, error) {
	iter, err := r.snapshot.NewIter(&pebble.IterOptions{
		KeyTypes:   pebble.IterKeyTypePointsOnly,
		LowerBound: lower,
		UpperBound: upper,
	})
	if err != nil {
		return nil, storeError(err)
	}
	return iter, nil
}

// within explains a block without state here (P8).
func (r *Reader) within(n chain.Number) error {
	switch {
	case n > r.heads.head.Number:
		return r.miss(chain.Future)
	case n < r.heads.oldest:
		return r.miss(chain.Pruned)
	}
	return nil
}

func (r *Reader) miss(why chain.Reason) error {
	return &chain.Miss{Reason: why, Oldest: r.heads.oldest, Latest: r.heads.head.Number}
}

// corrupt is damage at a key: it names the key and what was expected.
func corrupt(key []byte, format string, args ...any) error {
	return fmt.Errorf("%w: key %s: %w", chain.ErrCorrupt, formatKey(key), fmt.Errorf(format, args...))
}

func missing(key []byte) error { return corrupt(key, "missing") }
