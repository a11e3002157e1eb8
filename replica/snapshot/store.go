// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// ErrNone is the answer of a Store without any snapshot.
var ErrNone = errors.New("there is no snapshot")

// minKept is how many snapshots stay at least (S4).
const minKept = 2

// Options say how a Store works. The zero value is a good default.
type Options struct {
	// ChunkBytes is how big the chunks of an upload are. Zero means 4 MiB; what
	// is more than 16 MiB is lowered to that.
	ChunkBytes int

	// BytesPerSecond bounds what a Store sends and receives, so that neither
	// slows down what is more urgent. Zero means no bound.
	BytesPerSecond int

	// Parallel is how many chunks are fetched at the same time. Zero means 4.
	// A download holds twice this many in memory at most.
	Parallel int
}

const (
	defaultChunk    = 4 << 20
	defaultParallel = 4
)

// A Store holds snapshots. One process should upload to it; any number may
// download.
type Store struct {
	chunks, manifests Objects
	options           Options
	limit             *rate.Limiter

	// changing is held by the one Upload, Drop or Repair.
	changing sync.Mutex
	known    map[string]hashedFile // by name, of the last upload; guarded by changing
}

// NewStore returns a Store with its chunks in one place and its manifests in
// another: there are many of the one and few of the other, and all manifests are
// listed often.
func NewStore(chunks, manifests Objects, o Options) *Store {
	if o.ChunkBytes <= 0 {
		o.ChunkBytes = defaultChunk
	}
	o.ChunkBytes = min(o.ChunkBytes, maxChunk)
	if o.Parallel <= 0 {
		o.Parallel = defaultParallel
	}
	s := &Store{chunks: chunks, manifests: manifests, options: o, limit: rate.NewLimiter(rate.Inf, maxChunk)}
	if o.BytesPerSecond > 0 {
		s.limit = rate.NewLimiter(rate.Limit(o.BytesPerSecond), maxChunk)
		s.limit.AllowN(time.Now(), maxChunk) // no burst at the start
	}
	return s
}

// A Progress says how far an upload or a download is, in bytes.
type Progress struct {
	Done  int64 // of Total: sent, received, or found to be there already
	Total int64
	Moved int64 // of Done: sent or received
}

const manifestPrefix = "manifest-"

// Names returns the names of all snapshots, the newest first.
func (s *Store) Names(ctx context.Context) ([]string, error) {
	sizes, err := s.manifests.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	var names []string
	for name := range sizes {
		if strings.HasPrefix(name, manifestPrefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	return names, nil
}

// Manifest returns the manifest of one snapshot. The error wraps ErrNotFound
// where there is none of this name, and ErrManifest where it is malformed.
func (s *Store) Manifest(ctx context.Context, name string) (*Manifest, error) {
	data, err := s.manifests.Get(ctx, name, maxManifest)
	if err == nil && len(data) > maxManifest {
		err = fmt.Errorf("%w: more than %d bytes", ErrManifest, maxManifest)
	}
	if err != nil {
		return nil, fmt.Errorf("get snapshot %s: %w", name, err)
	}
	m, err := decodeManifest(data)
	if err != nil {
		return nil, fmt.Errorf("get snapshot %s: %w", name, err)
	}
	return m, nil
}

// Latest returns the newest snapshot. The error wraps ErrNone where there is
// none. Where the newest cannot be used, Names leads to those before it.
func (s *Store) Latest(ctx context.Context) (*Manifest, error) {
	names, err := s.Names(ctx)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, ErrNone
	}
	return s.Manifest(ctx, names[0])
}

// Drop deletes all but the newest snapshots, and the chunks that no snapshot
// names any more. It keeps two even where keep is less (S4). A snapshot whose
// manifest cannot be read keeps all chunks from being deleted, because it is not
// known which are its own; the error says so.
func (s *Store) Drop(ctx context.Context, keep int) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	names, err := s.Names(ctx)
	if err != nil {
		return err
	}
	kept := names[:min(len(names), max(keep, minKept))]
	named := make(map[string]bool)
	for _, name := range kept {
		m, err := s.Manifest(ctx, name)
		if err != nil {
			return fmt.Errorf("drop snapshots: %w", err)
		}
		for i := range m.Files {
			for _, c := range m.Files[i].Chunks {
				named[c.Sum.String()] = true
			}
		}
	}
	for _, name := range names[len(kept):] {
		if err := s.manifests.Delete(ctx, name); err != nil {
			return fmt.Errorf("drop snapshot %s: %w", name, err)
		}
	}
	return s.dropChunks(ctx, named)
}

// dropChunks deletes the chunks that are not named.
func (s *Store) dropChunks(ctx context.Context, named map[string]bool) error {
	have, err := s.chunks.List(ctx)
	if err != nil {
		return fmt.Errorf("list chunks: %w", err)
	}
	for name := range have {
		if named[name] {
			continue
		}
		if err := s.chunks.Delete(ctx, name); err != nil {
			return fmt.Errorf("drop chunk %s: %w", name, err)
		}
	}
	return nil
}

// Repair reads every chunk of a snapshot and deletes those that are damaged, so
// that the next Upload that has them sends them again: it believes that a chunk
// that is there is whole. It returns how many were missing or damaged. Where it
// cannot be told whether a chunk is whole, that is the error.
func (s *Store) Repair(ctx context.Context, m *Manifest) (bad int, err error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	for i := range m.Files {
		for j, c := range m.Files[i].Chunks {
			_, err := s.fetch(ctx, c)
			switch {
			case err == nil:
				continue
			case errors.Is(err, ErrNotFound):
				err = nil
			case errors.Is(err, ErrDamaged):
				err = s.chunks.Delete(ctx, c.Sum.String())
			}
			if err != nil {
				return bad, &ChunkError{m.Files[i].Name, j, c.Sum, err}
			}
			bad++
		}
	}
	return bad, nil
}

// ErrDamaged is the answer for a chunk that is not what its name says.
var ErrDamaged = errors.New("chunk is damaged")

// A ChunkError says which chunk of which file could not be had.
type ChunkError struct {
	File  string
	Index int
	Sum   Sum
	Err   error // wraps ErrNotFound or ErrDamaged, or is what the object store said
}

// Error implements error.
func (e *ChunkError) Error() string {
	return fmt.Sprintf("chunk %d of %s (%s): %v", e.Index, e.File, e.Sum, e.Err)
}

// Unwrap returns why.
func (e *ChunkError) Unwrap() error { return e.Err }

// fetch returns a chunk that is what its name says (S2).
func (s *Store) fetch(ctx context.Context, c Chunk) ([]byte, error) {
	if err := s.limit.WaitN(ctx, int(c.Size)); err != nil {
		return nil, err
	}
	data, err := s.chunks.Get(ctx, c.Sum.String(), c.Size)
	if err != nil {
		return nil, err
	}
	if int64(len(data)) != c.Size {
		return nil, fmt.Errorf("%w: %d bytes or more, want %d", ErrDamaged, len(data), c.Size)
	}
	if got := Sum(sha256.Sum256(data)); got != c.Sum {
		return nil, fmt.Errorf("%w: its content has %s", ErrDamaged, got)
	}
	return data, nil
}
