// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Upload makes a snapshot of the files in dir, which nothing may change
// meanwhile. About says what it is of; its Files, Time and Format are not looked
// at. It returns the manifest as it was stored. Chunks that are in the Store
// already are not sent. Progress, if not nil, is called after each chunk.
//
// After an error there is no new snapshot, and what was sent is of use to the
// next Upload, until Drop is called.
func (s *Store) Upload(ctx context.Context, dir string, about Manifest, progress func(Progress)) (*Manifest, error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	m, err := s.upload(ctx, dir, about, progress)
	if err != nil {
		return nil, fmt.Errorf("upload snapshot of %q: %w", dir, err)
	}
	return m, nil
}

func (s *Store) upload(ctx context.Context, dir string, m Manifest, progress func(Progress)) (*Manifest, error) {
	files, err := regularFiles(dir)
	if err != nil {
		return nil, err
	}
	have, err := s.chunks.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list chunks: %w", err)
	}
	u := upload{store: s, have: have, progress: progress, seen: make(map[string]hashedFile, len(files))}
	m.Format, m.Time, m.Files = manifestForm, time.Now().UTC(), nil
	for _, info := range files {
		u.state.Total += info.Size()
	}
	for _, info := range files {
		f, err := u.file(ctx, dir, info)
		if err != nil {
			return nil, fmt.Errorf("file %s: %w", info.Name(), err)
		}
		m.Files = append(m.Files, f)
	}
	if err := s.publish(ctx, &m); err != nil {
		return nil, err
	}
	s.known = u.seen
	return &m, nil
}

// publish writes the manifest, after a last look whether all chunks are there:
// another process may have dropped some (S1).
func (s *Store) publish(ctx context.Context, m *Manifest) error {
	data, err := m.encode()
	if err != nil {
		return err
	}
	have, err := s.chunks.List(ctx)
	if err != nil {
		return fmt.Errorf("list chunks: %w", err)
	}
	for i := range m.Files {
		for j, c := range m.Files[i].Chunks {
			if size, ok := have[c.Sum.String()]; !ok || size != c.Size {
				return &ChunkError{m.Files[i].Name, j, c.Sum, fmt.Errorf("%w after it was sent", ErrNotFound)}
			}
		}
	}
	name, err := s.nextName(ctx, sha256.Sum256(data))
	if err != nil {
		return err
	}
	if err := s.manifests.Put(ctx, name, data); err != nil {
		return fmt.Errorf("put manifest: %w", err)
	}
	return nil
}

// nextName returns a name that sorts after all others. It counts, because clocks
// go back; the hash keeps two uploaders from replacing each other's.
func (s *Store) nextName(ctx context.Context, sum Sum) (string, error) {
	names, err := s.Names(ctx)
	if err != nil {
		return "", err
	}
	var last uint64
	if len(names) > 0 {
		digits, _, _ := strings.Cut(strings.TrimPrefix(names[0], manifestPrefix), "-")
		if last, err = strconv.ParseUint(digits, 10, 64); err != nil {
			return "", fmt.Errorf("newest manifest %q: %w", names[0], err)
		}
	}
	return fmt.Sprintf("%s%020d-%.8s", manifestPrefix, last+1, sum), nil
}

// regularFiles lists dir in the order of names, and refuses what a snapshot
// cannot hold.
func regularFiles(dir string) (files []os.FileInfo, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !validName(e.Name()) {
			return nil, fmt.Errorf("%q is not a file of a store", e.Name())
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		files = append(files, info)
	}
	return files, nil
}

// A hashedFile is a file whose chunks are known. Tables are never written again
// and a checkpoint links to them, so the same file under the same name has the
// same content, and need not be read to know its chunks.
type hashedFile struct {
	info os.FileInfo
	file File
}

func (h hashedFile) is(info os.FileInfo) bool {
	return h.info != nil && os.SameFile(h.info, info) && h.info.Size() == info.Size() &&
		h.info.ModTime().Equal(info.ModTime()) && strings.HasSuffix(info.Name(), ".sst")
}

// An upload is one call of Upload.
type upload struct {
	store    *Store
	have     map[string]int64 // chunks in the store
	seen     map[string]hashedFile
	state    Progress
	progress func(Progress)
}

// file sends what of one file is not there.
func (u *upload) file(ctx context.Context, dir string, info os.FileInfo) (File, error) {
	f, known := u.alreadyThere(info)
	if known {
		u.advance(f.Size, 0)
	} else {
		var err error
		if f, err = u.send(ctx, filepath.Join(dir, info.Name()), info); err != nil {
			return File{}, err
		}
	}
	u.seen[info.Name()] = hashedFile{info, f}
	return f, nil
}

// alreadyThere returns a file of the last upload whose chunks are still there.
func (u *upload) alreadyThere(info os.FileInfo) (File, bool) {
	h := u.store.known[info.Name()]
	if !h.is(info) {
		return File{}, false
	}
	for _, c := range h.file.Chunks {
		if size, ok := u.have[c.Sum.String()]; !ok || size != c.Size {
			return File{}, false
		}
	}
	return h.file, true
}

func (u *upload) send(ctx context.Context, path string, info os.FileInfo) (File, error) {
	f := File{Name: info.Name()}
	source, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer func() { _ = source.Close() }() // it was only read
	buffer := make([]byte, u.store.options.ChunkBytes)
	for {
		n, err := io.ReadFull(source, buffer)
		if n > 0 {
			c := Chunk{sha256.Sum256(buffer[:n]), int64(n)}
			if err := u.chunk(ctx, c, buffer[:n]); err != nil {
				return File{}, &ChunkError{f.Name, len(f.Chunks), c.Sum, err}
			}
			f.Chunks, f.Size = append(f.Chunks, c), f.Size+c.Size
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return File{}, err
		}
	}
	if f.Size != info.Size() {
		return File{}, fmt.Errorf("has %d bytes, had %d when it was listed", f.Size, info.Size())
	}
	return f, nil
}

func (u *upload) chunk(ctx context.Context, c Chunk, data []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	name := c.Sum.String()
	if size, ok := u.have[name]; ok && size == c.Size {
		u.advance(c.Size, 0)
		return nil
	}
	if err := u.store.limit.WaitN(ctx, len(data)); err != nil {
		return err
	}
	if err := u.store.chunks.Put(ctx, name, data); err != nil {
		return err
	}
	u.have[name] = c.Size
	u.advance(c.Size, c.Size)
	return nil
}

func (u *upload) advance(done, moved int64) {
	u.state.Done += done
	u.state.Moved += moved
	if u.progress != nil {
		u.progress(u.state)
	}
}
