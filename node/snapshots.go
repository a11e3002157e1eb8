// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"glimpse/archive"
	"glimpse/chain"
	"glimpse/ops"
	"glimpse/replica/snapshot"
	"glimpse/replica/stream"
)

// snapshotting puts copies of the store where new replicas find them: every so
// often, and when one asks.
type snapshotting struct {
	*publishing
	db  *archive.DB
	dir string // of the copy while it is sent

	mu     sync.Mutex
	made   ops.Snapshots // guarded by mu
	newest chain.Ref     // of run alone: the head of the newest snapshot that this process made
}

const (
	// inChargeWithin is how long after the start the first attempt is, and how
	// long after each one that came too early the next.
	inChargeWithin = 100 * time.Millisecond

	// snapshotRetry is how long after a failure the next attempt is, and
	// snapshotPause how long after each one the next at the earliest, however many
	// replicas ask.
	snapshotRetry = 10 * time.Second
	snapshotPause = 2 * time.Second
)

// run makes snapshots until ctx ends. That one cannot be made is a line of the log,
// and no failure of the node.
func (s *snapshotting) run(ctx context.Context) error {
	wants, stop, err := s.conn.Wanted(s.settings)
	if err != nil {
		return err
	}
	defer stop()
	want := stream.Newer
	next := time.NewTimer(inChargeWithin)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
		case want = <-wants:
		}
		if !s.publisher.Stats().InCharge {
			next.Reset(inChargeWithin)
			continue
		}
		wait := s.config.SnapshotEvery
		if err := s.snapshot(ctx, want); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			s.log.Warn("no snapshot for replicas", "err", err)
			s.count(func(n *ops.Snapshots) { n.Failed++ })
			wait = min(wait, snapshotRetry)
		}
		want = ""
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(min(snapshotPause, wait)):
		}
		next.Reset(wait)
	}
}

// snapshot makes one, unless there is one of this block and nobody asks.
func (s *snapshotting) snapshot(ctx context.Context, want stream.Want) error {
	began := time.Now()
	if head, _, err := s.db.Digest(); err != nil || want == "" && head == s.newest {
		return err
	}
	js, err := s.conn.JetStream()
	if err != nil {
		return err
	}
	store, err := snapshot.MakeStore(ctx, js, s.name(), max(s.settings.Replicas, 1), snapshot.Options{})
	if err != nil {
		return err
	}
	if want == stream.Whole {
		if err := s.repair(ctx, store); err != nil {
			return err
		}
	}
	about, err := s.copy()
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(s.dir) }() // what stays is removed before the next
	var last snapshot.Progress
	m, err := store.Upload(ctx, s.dir, about, func(p snapshot.Progress) { last = p })
	if err != nil {
		return err
	}
	s.newest = m.Head
	took := time.Since(began)
	s.log.Info("snapshot for replicas", "block", m.Head.Number, "bytes", m.Bytes(), "sent", last.Moved, "took", took.Round(time.Millisecond))
	s.count(func(n *ops.Snapshots) {
		n.Made++
		n.Last, n.Block, n.Bytes = time.Now(), m.Head.Number, m.Bytes()
		n.Sent += uint64(last.Moved)
	})
	return store.Drop(ctx, s.config.SnapshotsKeep)
}

// repair deletes damaged chunks of the snapshots there are, because uploading
// believes that a chunk that is there is whole. A manifest that cannot be read is
// left to Drop.
func (s *snapshotting) repair(ctx context.Context, store *snapshot.Store) error {
	names, err := store.Names(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		m, err := store.Manifest(ctx, name)
		if err != nil {
			s.log.Warn("snapshot cannot be read", "snapshot", name, "err", err)
			continue
		}
		bad, err := store.Repair(ctx, m)
		if err != nil {
			return err
		}
		if bad > 0 {
			s.log.Warn("snapshot was damaged, its chunks are sent again", "snapshot", name, "chunks", bad)
			s.count(func(n *ops.Snapshots) { n.Damaged += uint64(bad) })
		}
	}
	return nil
}

// copy makes a copy of the store and says what it is of.
func (s *snapshotting) copy() (snapshot.Manifest, error) {
	if err := os.RemoveAll(s.dir); err != nil {
		return snapshot.Manifest{}, err
	}
	at, err := s.db.Checkpoint(s.dir)
	if err != nil {
		return snapshot.Manifest{}, err
	}
	id, ok := s.db.Identity()
	if !ok {
		return snapshot.Manifest{}, fmt.Errorf("copy of %q: %w", s.dir, archive.ErrEmpty)
	}
	return snapshot.Manifest{ChainID: id.ChainID, Genesis: id.Genesis, Head: at.Head, Digest: snapshot.Sum(at.Digest)}, nil
}

func (s *snapshotting) count(f func(*ops.Snapshots)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.made)
}

func (s *snapshotting) numbers() *ops.Snapshots {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.made
	return &n
}
