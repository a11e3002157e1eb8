// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"glimpse/archive"
	"glimpse/chain"
	"glimpse/follow/origin"
	"glimpse/pending"
	"glimpse/replica"
)

// A replicaStore is one store of a replica, which the events of the stream are
// applied to, and what readers see of it. It belongs to the goroutine of the Tail,
// but for what says otherwise.
type replicaStore struct {
	node    *replicaNode
	db      *archive.DB
	dir     string
	origin  *origin.Origin // nil where all state is here
	reading reading
	synced  time.Time

	shown    *archive.Reader // what readers see of it; nil before the first
	caughtUp atomic.Bool     // readers have seen it at the end of the stream; for all goroutines
}

var _ replica.Store = (*replicaStore)(nil)

// Head implements replica.Store.
func (s *replicaStore) Head() (chain.Ref, error) {
	return read(s.db, func(r *archive.Reader) (chain.Ref, error) { return r.Head(), nil })
}

// Hash implements replica.Store.
func (s *replicaStore) Hash(n chain.Number) (chain.Hash, error) {
	return read(s.db, func(r *archive.Reader) (chain.Hash, error) { return r.Hash(n) })
}

// Digest implements replica.Store.
func (s *replicaStore) Digest(n chain.Number) (replica.Digest, error) {
	d, err := read(s.db, func(r *archive.Reader) (archive.Digest, error) { return r.Digest(n) })
	return replica.Digest(d), err
}

// Commit implements replica.Store. It does not wait for the disk: what a crash
// takes is in the stream.
func (s *replicaStore) Commit(b *replica.Sealed) error {
	err := s.db.CommitUnsynced(archive.Block{
		Ref: b.Ref, Parent: b.Parent, Header: b.Header, Body: b.Body,
		Transactions: b.Transactions, Receipts: b.Receipts, Diff: b.Diff, Digest: archive.Digest(b.Digest),
	})
	if err != nil {
		return contradiction(err)
	}
	if time.Since(s.synced) < syncEvery {
		return nil
	}
	s.synced = time.Now()
	return s.db.Sync()
}

// contradiction marks an error that says that the store is not the writer's, or is
// damaged. No retry mends it, and a snapshot does. Others are of the disk.
func contradiction(err error) error {
	for _, cause := range []error{archive.ErrDigest, archive.ErrParent, archive.ErrNoCode, chain.ErrDiff, chain.ErrCorrupt} {
		if errors.Is(err, cause) {
			return fmt.Errorf("%w: %w", replica.ErrMismatch, err)
		}
	}
	return err
}

// Unwind implements replica.Store. A block whose state is not here, which a store
// that was made of a pruned one may not have, cannot be gone back to.
func (s *replicaStore) Unwind(to chain.Number) error {
	err := unwind(s.db, nil, to)
	if errors.As(err, new(*chain.Miss)) {
		return fmt.Errorf("%w: %w", replica.ErrMismatch, err)
	}
	return contradiction(err)
}

// SetTags implements replica.Store.
func (s *replicaStore) SetTags(m replica.Marks) error { return s.db.SetTags(m.Safe, m.Finalized) }

// KeepFacts implements replica.Store.
func (s *replicaStore) KeepFacts(f *chain.Facts) error { return contradiction(s.db.KeepOrigin(f)) }

// Publish implements replica.Store. It is called when all there is was applied, so
// a store that was built anew takes the place of the one from before here, and
// readers go on from where that was or later.
func (s *replicaStore) Publish(o *replica.Overlay, goodUntil time.Time) error {
	overlay, err := overlayOfReplica(o)
	if err != nil {
		return err
	}
	r, err := s.db.NewReader()
	if err != nil {
		return err
	}
	s.count(r.Head(), o)
	s.show(r, overlay, goodUntil)
	s.caughtUp.Store(true)
	s.node.replaced(s)
	return nil
}

// show takes over a reference to r.
func (s *replicaStore) show(r *archive.Reader, o *pending.Overlay, goodUntil time.Time) {
	if s.shown != nil {
		s.shown.Release()
	}
	s.shown = r
	r.Retain() // it succeeds: it is held here
	if o == nil {
		s.node.published.Publish(s.reading.state(r), nil, goodUntil)
		return
	}
	s.node.published.Publish(s.reading.state(r), o, goodUntil)
}

// count tells what is new to the metrics.
func (s *replicaStore) count(head chain.Ref, o *replica.Overlay) {
	metrics := s.node.service.metrics
	if s.shown == nil || s.shown.Head() != head {
		metrics.Block()
		if s.shown != nil && head.Number <= s.shown.Head().Number {
			metrics.Reorg(int(s.shown.Head().Number-head.Number) + 1)
		}
	}
	if o != nil && len(o.Blocks) > 0 {
		metrics.FeedMessage()
		metrics.Flashblock(pending.Applied)
	}
}

// overlayOfReplica puts what was received into the form that is read; nil is
// nothing.
func overlayOfReplica(o *replica.Overlay) (*pending.Overlay, error) {
	if o == nil {
		o = new(replica.Overlay)
	}
	parts := make([]pending.Part, len(o.Blocks))
	for i, b := range o.Blocks {
		parts[i] = pending.Part{Block: b.Block, Layers: make([]pending.Layer, len(b.Layers))}
		for k, l := range b.Layers {
			parts[i].Layers[k] = pending.Layer(l)
		}
	}
	return pending.NewOverlay(o.Parent, parts)
}

// Withdraw implements replica.Store. The store may be in the middle of a branch, so
// it is what readers see already that they see without anything on it.
func (s *replicaStore) Withdraw() {
	if s.shown != nil && s.shown.Retain() {
		s.show(s.shown, nil, time.Time{})
	}
}

// release lets go of what readers are shown of the store, which stays theirs until
// something else is published.
func (s *replicaStore) release() {
	if s.shown != nil {
		s.shown.Release()
		s.shown = nil
	}
}

// close frees the store, which must not be shown any more. It fails while requests
// read it.
func (s *replicaStore) close() error {
	if s.origin != nil {
		s.origin.Close()
	}
	return s.db.Close()
}
