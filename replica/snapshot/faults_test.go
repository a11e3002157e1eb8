// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"glimpse/replica/snapshot"
)

// second is the second chunk of the first file.
func second(m *snapshot.Manifest) string { return m.Files[0].Chunks[1].Sum.String() }

// loseMessages deletes what an object consists of and leaves its name.
func loseMessages(f *fixture, name string) error {
	objects, err := f.js.ObjectStore(f.t.Context(), "chunks")
	if err != nil {
		return err
	}
	info, err := objects.GetInfo(f.t.Context(), name)
	if err != nil {
		return err
	}
	stream, err := f.js.Stream(f.t.Context(), "OBJ_chunks")
	if err != nil {
		return err
	}
	return stream.Purge(f.t.Context(), jetstream.WithPurgeSubject(f.chunks.ChunkSubject(info.NUID)))
}

// Who stops does not wait for what does not arrive.
func TestDownloadThatIsStoppedEndsAtOnce(t *testing.T) {
	f := newFixture(t)
	m, _ := f.upload(some(), 5)
	if err := loseMessages(f, second(m)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	err := f.store.Download(ctx, m, filepath.Join(t.TempDir(), "db"), nil)
	if took := time.Since(began); err == nil || took > 8*time.Second { // whichever deadline is noticed first
		t.Errorf("download ended with %v after %v", err, took)
	}
}

func TestChunkThatIsNotWholeIsNamed(t *testing.T) {
	tests := []struct {
		name   string
		damage func(f *fixture, name string) error
		want   error
	}{
		{"missing", func(f *fixture, name string) error { return f.chunks.Delete(f.t.Context(), name) }, snapshot.ErrNotFound},
		{"other content of the same size", func(f *fixture, name string) error {
			return f.chunks.Put(f.t.Context(), name, random(77, chunk))
		}, snapshot.ErrDamaged},
		{"shorter", func(f *fixture, name string) error {
			return f.chunks.Put(f.t.Context(), name, random(1, 5))
		}, snapshot.ErrDamaged},
		{"much longer", func(f *fixture, name string) error {
			return f.chunks.Put(f.t.Context(), name, random(1, 5<<20))
		}, snapshot.ErrDamaged},
		{"its messages are lost", loseMessages, snapshot.ErrDamaged},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			f.chunks.Hurry(time.Second)
			what := some()
			m, _ := f.upload(what, 5)
			if err := tt.damage(f, second(m)); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), "db")
			err := f.store.Download(t.Context(), m, dir, nil)
			var chunk *snapshot.ChunkError
			if !errors.Is(err, tt.want) || !errors.As(err, &chunk) || chunk.File != m.Files[0].Name || chunk.Index != 1 ||
				!strings.Contains(err.Error(), second(m)) {
				t.Fatalf("download: got %v, want %v naming chunk 1 of %s", err, tt.want, m.Files[0].Name)
			}
			if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("directory after the error: got %v, want none", err)
			}
			if bad, err := f.store.Repair(t.Context(), m); bad != 1 || err != nil {
				t.Errorf("Repair: got %d, %v, want 1", bad, err)
			}
			m, sent := f.upload(what, 6)
			if sent.Moved != m.Files[0].Chunks[1].Size {
				t.Errorf("upload after the repair: got %+v, want one chunk moved", sent)
			}
			if err := f.store.Download(t.Context(), m, dir, nil); err != nil {
				t.Fatal(err)
			}
			what.expect(t, dir)
		})
	}
}

func TestHostileManifestIsRefused(t *testing.T) {
	good := func() snapshot.Manifest {
		m := about(1)
		m.Format = 1
		m.Files = []snapshot.File{{Name: "a", Size: 5, Chunks: []snapshot.Chunk{{Size: 5}}}, {Name: "b"}}
		return m
	}
	named := func(name string) func(*snapshot.Manifest) {
		return func(m *snapshot.Manifest) { m.Files[0].Name = name }
	}
	tests := []struct {
		name   string
		change func(*snapshot.Manifest)
	}{
		{"name that leads upwards", named("../a")},
		{"name of the directory above", named("..")},
		{"name of the directory itself", named(".")},
		{"absolute name", named("/etc/passwd")},
		{"name in another directory", named("A/b")},
		{"name with a separator of another system", named(`A\b`)},
		{"name with a zero", named("A\x00")},
		{"empty name", named("")},
		{"long name", named(strings.Repeat("A", 300))},
		{"one name twice", func(m *snapshot.Manifest) { m.Files[1].Name = "a" }},
		{"no files", func(m *snapshot.Manifest) { m.Files = nil }},
		{"another format", func(m *snapshot.Manifest) { m.Format = 2 }},
		{"chunk of no size", func(m *snapshot.Manifest) { m.Files[1].Chunks = []snapshot.Chunk{{}} }},
		{"chunk of negative size", func(m *snapshot.Manifest) {
			m.Files[0].Chunks = []snapshot.Chunk{{Size: -5}, {Size: 10}}
		}},
		{"chunk that does not fit into memory", func(m *snapshot.Manifest) {
			m.Files[0].Size, m.Files[0].Chunks[0].Size = 1<<40, 1<<40
		}},
		{"file bigger than its chunks", func(m *snapshot.Manifest) { m.Files[0].Size = 6 }},
	}
	decode := func(m snapshot.Manifest) error {
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		_, err = snapshot.DecodeManifest(data)
		return err
	}
	if err := decode(good()); err != nil {
		t.Fatalf("a good manifest: got %v, want none", err)
	}
	store := snapshot.NewStore(nil, nil, snapshot.Options{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := good()
			tt.change(&m)
			if err := decode(m); !errors.Is(err, snapshot.ErrManifest) {
				t.Errorf("decode: got %v, want ErrManifest", err)
			}
			dir := t.TempDir()
			if err := store.Download(t.Context(), &m, filepath.Join(dir, "db"), nil); !errors.Is(err, snapshot.ErrManifest) {
				t.Errorf("download: got %v, want ErrManifest", err)
			}
			if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
				t.Errorf("after the refusal: got %v, %v, want nothing", left, err)
			}
		})
	}
}

// A link in the place of a file must not lead a download out of its directory.
func TestDownloadDoesNotFollowLinks(t *testing.T) {
	f := newFixture(t)
	what := some()
	m, _ := f.upload(what, 5)
	base := t.TempDir()
	dir, outside := filepath.Join(base, "db"), filepath.Join(base, "outside")
	err := errors.Join(os.WriteFile(outside, []byte("mine"), 0o600), os.Mkdir(dir+".partial", 0o700),
		os.Symlink(outside, filepath.Join(dir+".partial", "000004.sst")))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.store.Download(t.Context(), m, dir, nil); err != nil {
		t.Fatal(err)
	}
	what.expect(t, dir)
	if got, err := os.ReadFile(outside); string(got) != "mine" || err != nil {
		t.Errorf("file outside: got %q, %v, want it as it was", got, err)
	}
}

func TestUploadRefusesWhatIsNoStore(t *testing.T) {
	f := newFixture(t)
	dir := some().write(t)
	if err := os.Mkdir(filepath.Join(dir, "log"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := f.store.Upload(t.Context(), dir, about(1), nil); err == nil || !strings.Contains(err.Error(), `"log"`) {
		t.Errorf("Upload of a directory in a directory: got %v, want a refusal that names it", err)
	}
}

func TestDropKeepsTwoAndWhatTheyName(t *testing.T) {
	f := newFixture(t)
	shared := random(1, chunk)
	var all []*snapshot.Manifest
	for i := range 4 {
		m, _ := f.upload(files{"shared.sst": shared, fmt.Sprintf("%d.sst", i): random(uint64(10+i), 100)}, 1)
		all = append(all, m)
	}
	stray := f.chunks.Put(t.Context(), strings.Repeat("0", 64), []byte("of an upload that ended early"))
	if err := errors.Join(stray, f.store.Drop(t.Context(), 0)); err != nil {
		t.Fatal(err)
	}
	names, err := f.store.Names(t.Context())
	if err != nil || len(names) != 2 {
		t.Fatalf("snapshots: got %v, %v, want 2", names, err)
	}
	chunks, err := f.chunks.List(t.Context())
	if err != nil || len(chunks) != 3 {
		t.Errorf("chunks: got %v, %v, want the shared one and two others", chunks, err)
	}
	for i, m := range all {
		err := f.store.Download(t.Context(), m, filepath.Join(t.TempDir(), "db"), nil)
		if kept := i >= 2; kept != (err == nil) || !kept && !errors.Is(err, snapshot.ErrNotFound) {
			t.Errorf("download of snapshot %d: got %v, want it kept: %v", i, err, kept)
		}
	}
	if names, err := f.store.Names(t.Context()); err != nil || !strings.HasPrefix(names[0], "manifest-00000000000000000004-") {
		t.Errorf("newest: got %v, %v, want the fourth", names, err)
	}
	stream, err := f.js.Stream(t.Context(), "OBJ_chunks")
	if err != nil {
		t.Fatal(err)
	}
	if got := stream.CachedInfo().State.Msgs; got != 6 { // a name and a content each
		t.Errorf("messages after the drop: got %d, want 6", got)
	}
}

func TestDropLeavesAllWhereAManifestIsUnreadable(t *testing.T) {
	f := newFixture(t)
	f.upload(some(), 1)
	if err := f.manifests.Put(t.Context(), "manifest-00000000000000000002-x", []byte("{")); err != nil {
		t.Fatal(err)
	}
	before, err := f.chunks.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.store.Drop(t.Context(), 2); !errors.Is(err, snapshot.ErrManifest) {
		t.Errorf("Drop: got %v, want ErrManifest", err)
	}
	if after, err := f.chunks.List(t.Context()); len(after) != len(before) || err != nil {
		t.Errorf("chunks: got %d, %v, want all %d", len(after), err, len(before))
	}
}

// memory are Objects in memory, without any time of their own.
type memory map[string][]byte

func (m memory) Put(_ context.Context, name string, data []byte) error {
	m[name] = append([]byte{}, data...)
	return nil
}

func (m memory) Get(_ context.Context, name string, _ int64) ([]byte, error) {
	if data, ok := m[name]; ok {
		return data, nil
	}
	return nil, snapshot.ErrNotFound
}

func (m memory) List(context.Context) (map[string]int64, error) {
	sizes := make(map[string]int64)
	for name, data := range m {
		sizes[name] = int64(len(data))
	}
	return sizes, nil
}

func (m memory) Delete(_ context.Context, name string) error {
	delete(m, name)
	return nil
}

func TestRateIsKept(t *testing.T) {
	dir, out := files{"a.sst": random(1, 8*chunk)}.write(t), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := snapshot.NewStore(memory{}, memory{}, snapshot.Options{ChunkBytes: chunk, BytesPerSecond: chunk})
		began := time.Now()
		m, err := s.Upload(t.Context(), dir, about(1), nil)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began).Round(time.Millisecond); took != 8*time.Second {
			t.Errorf("upload of 8 chunks at one a second: took %s", took)
		}
		began = time.Now()
		if err := s.Download(t.Context(), m, filepath.Join(out, "db"), nil); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began).Round(time.Millisecond); took != 8*time.Second {
			t.Errorf("download of 8 chunks at one a second: took %s", took)
		}
	})
}

// A chunk that another process drops while an upload counts on it keeps the
// snapshot from being published (S1).
func TestUploadThatLosesAChunkIsNotPublished(t *testing.T) {
	chunks := memory{}
	s := snapshot.NewStore(chunks, memory{}, snapshot.Options{ChunkBytes: chunk})
	lose := func(p snapshot.Progress) {
		if p.Done == p.Total {
			for name := range chunks {
				delete(chunks, name)
				break
			}
		}
	}
	if _, err := s.Upload(t.Context(), some().write(t), about(1), lose); !errors.Is(err, snapshot.ErrNotFound) {
		t.Errorf("Upload: got %v, want ErrNotFound", err)
	}
	if _, err := s.Latest(t.Context()); !errors.Is(err, snapshot.ErrNone) {
		t.Errorf("Latest: got %v, want ErrNone", err)
	}
}
