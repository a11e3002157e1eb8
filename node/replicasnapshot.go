// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"glimpse/archive"
	"glimpse/chain"
	"glimpse/replica"
	"glimpse/replica/snapshot"
	"glimpse/replica/stream"
)

// How long a replica waits before it looks for a snapshot again.
const (
	minFetchWait = 200 * time.Millisecond
	maxFetchWait = 5 * time.Second
)

// fetch makes a store of the newest snapshot that reaches a block, and asks the
// writer for one where there is none, until ctx ends. It fails where the stream is
// another chain's.
func (n *replicaNode) fetch(ctx context.Context, reaches chain.Number) (*replicaStore, error) {
	said := ""
	for wait := minFetchWait; ; wait = min(2*wait, maxFetchWait) {
		s, err := n.tryFetch(ctx, reaches)
		if err == nil || errors.Is(err, replica.ErrForeign) || errors.Is(err, errNotOurs) {
			return s, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err.Error() != said {
			said = err.Error()
			n.config.Log.Warn("no snapshot to begin with yet, asking the writer", "stream", n.name(), "err", err)
		}
		want := stream.Newer
		if errors.As(err, new(*snapshot.ChunkError)) {
			want = stream.Whole
		}
		_ = n.conn.Ask(n.settings, want) // what is not heard is asked again
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// tryFetch tries all snapshots there are, the newest first.
func (n *replicaNode) tryFetch(ctx context.Context, reaches chain.Number) (*replicaStore, error) {
	id, err := stream.Describe(ctx, n.conn.Conn, n.settings)
	if err != nil {
		return nil, err
	}
	n.noteAnswer(time.Now())
	if n.chain != (replica.Identity{}) && id != n.chain {
		return nil, fmt.Errorf("%w: it is of %s, this replica is of %s", replica.ErrForeign, id, n.chain)
	}
	js, err := n.conn.JetStream()
	if err != nil {
		return nil, err
	}
	store, err := snapshot.OpenStore(ctx, js, n.name(), snapshot.Options{})
	if err != nil {
		return nil, err
	}
	names, err := store.Names(ctx)
	if err != nil {
		return nil, err
	}
	failed := snapshot.ErrNone
	for _, name := range names {
		s, err := n.fetchOne(ctx, store, name, id, reaches)
		if err == nil || errors.Is(err, replica.ErrForeign) || errors.Is(err, errNotOurs) || ctx.Err() != nil {
			return s, err
		}
		failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
		if errors.Is(err, errTooOld) {
			break // those before it are older
		}
		n.config.Log.Warn("snapshot cannot be used", "snapshot", name, "err", err)
	}
	return nil, failed
}

var (
	// errTooOld is of a snapshot that the stream does not lead on from.
	errTooOld = errors.New("the stream has moved on from it")

	// errNotOurs is of a directory that cannot be written, which no snapshot mends.
	errNotOurs = errors.New("the datadir cannot be used")
)

func (n *replicaNode) fetchOne(ctx context.Context, from *snapshot.Store, name string, id replica.Identity, reaches chain.Number) (*replicaStore, error) {
	m, err := from.Manifest(ctx, name)
	if err != nil {
		return nil, err
	}
	if of := (replica.Identity{ChainID: m.ChainID, Genesis: m.Genesis}); of != id {
		return nil, fmt.Errorf("%w: the snapshot is of %s, the stream of %s", replica.ErrForeign, of, id)
	}
	if m.Head.Number < reaches {
		return nil, fmt.Errorf("%w: it is of block %d, want %d or later", errTooOld, m.Head.Number, reaches)
	}
	dir, err := n.dir.next()
	if err == nil {
		err = os.MkdirAll(string(n.dir), 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotOurs, err)
	}
	n.config.Log.Info("downloading a snapshot", "snapshot", name, "block", m.Head.Number, "bytes", m.Bytes())
	progress := downloadProgress{log: n.config.Log, began: time.Now(), said: time.Now()}
	advance := func(p snapshot.Progress) {
		n.fetching.Store(&p)
		n.noteAnswer(time.Now())
		progress.advance(p)
	}
	advance(snapshot.Progress{Total: m.Bytes()})
	defer n.fetching.Store(nil)
	if err := from.Download(ctx, m, dir, advance); err != nil {
		return nil, err
	}
	s, err := n.openStore(dir)
	if err == nil {
		if err = s.is(m); err != nil {
			err = errors.Join(err, s.close())
		}
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	n.config.Log.Info("snapshot downloaded", "snapshot", name, "block", m.Head.Number, "bytes", m.Bytes(), "fetched", progress.moved, "took", time.Since(progress.began).Round(time.Millisecond))
	return s, nil
}

// is compares a store with the manifest that it was made by.
func (s *replicaStore) is(m *snapshot.Manifest) error {
	id, ok := s.db.Identity()
	if !ok {
		return archive.ErrEmpty
	}
	head, digest, err := s.db.Digest()
	if err != nil {
		return err
	}
	if id.ChainID != m.ChainID || id.Genesis != m.Genesis || head != m.Head || snapshot.Sum(digest) != m.Digest {
		return fmt.Errorf("%w: it is at block %s with digest %s, its manifest says %s with %s", snapshot.ErrDamaged, head, digest, m.Head, m.Digest)
	}
	return nil
}

// downloadProgress logs how far a download is, every so often. It is called from one
// goroutine at a time.
type downloadProgress struct {
	log interface {
		Info(msg string, args ...any)
	}
	began, said time.Time
	moved       int64
}

const downloadReport = 2 * time.Second

func (d *downloadProgress) advance(p snapshot.Progress) {
	d.moved = p.Moved
	if time.Since(d.said) < downloadReport {
		return
	}
	d.said = time.Now()
	perSecond := float64(p.Moved) / time.Since(d.began).Seconds()
	d.log.Info("downloading", "percent", 100*p.Done/max(p.Total, 1), "bytes", p.Done, "of", p.Total, "per-second", int64(perSecond))
}
