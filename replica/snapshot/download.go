// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// partial is what the name of a directory ends in while it is downloaded to.
const partial = ".partial"

// Download makes dir, which must not exist, with the files of a snapshot. It
// appears when all of it is verified and durable (S3). Until then everything is
// in a directory beside it whose name ends in ".partial"; after an error or a
// crash that stays, and another Download to dir, of this or another snapshot,
// fetches only what is not there and whole. One Download to dir at a time.
//
// A chunk that is missing or damaged is a *ChunkError. Progress, if not nil, is
// called after each chunk, from one goroutine at a time.
func (s *Store) Download(ctx context.Context, m *Manifest, dir string, progress func(Progress)) error {
	if err := s.download(ctx, m, filepath.Clean(dir), progress); err != nil {
		return fmt.Errorf("download snapshot to %q: %w", dir, err)
	}
	return nil
}

func (s *Store) download(ctx context.Context, m *Manifest, dir string, progress func(Progress)) error {
	if err := m.validate(); err != nil {
		return err
	}
	if _, err := os.Lstat(dir); err == nil {
		return fs.ErrExist
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(dir+partial, 0o755); err != nil {
		return err
	}
	// Through a Root no name can lead elsewhere, not even by a link that
	// somebody has put there.
	root, err := os.OpenRoot(dir + partial)
	if err != nil {
		return err
	}
	d := &download{
		store: s, root: root, progress: progress,
		state: Progress{Total: m.Bytes()},
		turns: make(chan struct{}, s.options.Parallel),
	}
	if err := errors.Join(d.run(ctx, m), root.Close()); err != nil {
		return err
	}
	if err := syncDir(dir + partial); err != nil {
		return err
	}
	if err := os.Rename(dir+partial, dir); err != nil {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// A download is one call of Download.
type download struct {
	store *Store
	root  *os.Root
	turns chan struct{} // one for each chunk in memory; when it is full the next one waits

	mu       sync.Mutex // guards what follows
	state    Progress
	progress func(Progress)
}

func (d *download) run(ctx context.Context, m *Manifest) error {
	if err := d.removeOthers(m); err != nil {
		return err
	}
	// Many files are smaller than a chunk, so several are open at the same time.
	return each(ctx, d.store.options.Parallel, m.Files, func(ctx context.Context, _ int, f File) error {
		return d.file(ctx, &f)
	})
}

// each calls do for all items, few at a time, and returns when all calls have.
// After the first error, which it returns, it begins no other.
func each[T any](ctx context.Context, few int, items []T, do func(ctx context.Context, i int, item T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	turns := make(chan struct{}, few) // when it is full the loop waits for one to end
	for i, item := range items {
		turns <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wait.Go(func() {
			defer func() { <-turns }()
			if err := do(ctx, i, item); err != nil {
				cancel(err)
			}
		})
	}
	wait.Wait()
	return context.Cause(ctx)
}

// removeOthers deletes what an earlier download left and this one does not name.
func (d *download) removeOthers(m *Manifest) error {
	named := make(map[string]bool, len(m.Files))
	for i := range m.Files {
		named[m.Files[i].Name] = true
	}
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if named[e.Name()] && e.Type().IsRegular() {
			continue
		}
		if err := d.root.RemoveAll(e.Name()); err != nil {
			return err
		}
	}
	return nil
}

// file fetches the chunks of one file that are not there and makes it durable.
func (d *download) file(ctx context.Context, f *File) (err error) {
	target, err := d.root.OpenFile(f.Name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	offsets := make([]int64, len(f.Chunks)+1)
	for i, c := range f.Chunks {
		offsets[i+1] = offsets[i] + c.Size
	}
	err = each(ctx, d.store.options.Parallel, f.Chunks, func(ctx context.Context, i int, c Chunk) error {
		d.turns <- struct{}{}
		defer func() { <-d.turns }()
		if err := d.chunk(ctx, target, c, offsets[i]); err != nil {
			return &ChunkError{f.Name, i, c.Sum, err}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := target.Truncate(f.Size); err != nil {
		return err
	}
	return target.Sync()
}

// chunk brings one chunk to its place, unless it is there.
func (d *download) chunk(ctx context.Context, target *os.File, c Chunk, at int64) error {
	there, err := isThere(target, c, at)
	if err != nil {
		return err
	}
	if there {
		d.advance(c.Size, 0)
		return nil
	}
	data, err := d.store.fetch(ctx, c)
	if err != nil {
		return err
	}
	if _, err := target.WriteAt(data, at); err != nil {
		return err
	}
	d.advance(c.Size, c.Size)
	return nil
}

// isThere reads what an earlier download left and believes its hash alone.
func isThere(target io.ReaderAt, c Chunk, at int64) (bool, error) {
	hash := sha256.New()
	n, err := io.Copy(hash, io.NewSectionReader(target, at, c.Size))
	if err != nil || n != c.Size {
		return false, err
	}
	return Sum(hash.Sum(nil)) == c.Sum, nil
}

func (d *download) advance(done, moved int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state.Done += done
	d.state.Moved += moved
	if d.progress != nil {
		d.progress(d.state)
	}
}
