// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"glimpse/chain"
	"glimpse/replica/embedded"
	"glimpse/replica/snapshot"
)

const chunk = 64 << 10

// A fixture is a Store in a real JetStream.
type fixture struct {
	t                 *testing.T
	js                jetstream.JetStream
	chunks, manifests *snapshot.Bucket
	store             *snapshot.Store
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	server, err := embedded.Start(embedded.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	conn, err := server.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, js: js}
	f.chunks, f.manifests = f.bucket("chunks"), f.bucket("manifests")
	f.store = snapshot.NewStore(f.chunks, f.manifests, snapshot.Options{ChunkBytes: chunk})
	return f
}

func (f *fixture) bucket(name string) *snapshot.Bucket {
	f.t.Helper()
	if _, err := snapshot.OpenBucket(f.t.Context(), f.js, name); !errors.Is(err, snapshot.ErrNotFound) {
		f.t.Fatalf("open a bucket that is not there: got %v, want ErrNotFound", err)
	}
	if _, err := snapshot.MakeBucket(f.t.Context(), f.js, name, 1); err != nil {
		f.t.Fatal(err)
	}
	b, err := snapshot.OpenBucket(f.t.Context(), f.js, name)
	if err != nil {
		f.t.Fatal(err)
	}
	return b
}

// files are the contents of a directory.
type files map[string][]byte

func random(seed uint64, size int) []byte {
	data := make([]byte, size)
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	return data
}

// some are the files of a store: of no size, of one chunk exactly, and others.
func some() files {
	return files{
		"000004.sst":                        random(1, 5*chunk+17),
		"000005.sst":                        random(2, chunk),
		"000006.sst":                        random(3, 100),
		"MANIFEST-000001":                   random(4, 2*chunk),
		"marker.manifest.000001.MANIFEST-1": {},
	}
}

func (fs files) write(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range fs {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func (fs files) bytes() (n int64) {
	for _, data := range fs {
		n += int64(len(data))
	}
	return n
}

// expect expects exactly these files in dir.
func (want files) expect(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(want) {
		t.Errorf("files: got %v, want %d", entries, len(want))
	}
	for name, data := range want {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("file %s: got %d bytes, %v, want the %d that were uploaded", name, len(got), err, len(data))
		}
	}
}

func about(n chain.Number) snapshot.Manifest {
	return snapshot.Manifest{
		ChainID: 7, Genesis: chain.Hash{1}, Head: chain.Ref{Number: n, Hash: chain.Hash{2}},
		Digest: snapshot.Sum{3}, Position: 99,
	}
}

func (f *fixture) upload(what files, n chain.Number) (*snapshot.Manifest, snapshot.Progress) {
	f.t.Helper()
	var last snapshot.Progress
	m, err := f.store.Upload(f.t.Context(), what.write(f.t), about(n), func(p snapshot.Progress) { last = p })
	if err != nil {
		f.t.Fatal(err)
	}
	return m, last
}

func TestRoundTrip(t *testing.T) {
	f := newFixture(t)
	if _, err := f.store.Latest(t.Context()); !errors.Is(err, snapshot.ErrNone) {
		t.Errorf("Latest of an empty store: got %v, want ErrNone", err)
	}
	what := some()
	began := time.Now().Add(-time.Second)
	_, sent := f.upload(what, 5)
	if want := (snapshot.Progress{Done: what.bytes(), Total: what.bytes(), Moved: what.bytes()}); sent != want {
		t.Errorf("progress at the end of the upload: got %+v, want %+v", sent, want)
	}
	m, err := f.store.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := about(5)
	if m.ChainID != want.ChainID || m.Genesis != want.Genesis || m.Head != want.Head || m.Digest != want.Digest ||
		m.Position != want.Position || m.Time.Before(began) || m.Bytes() != what.bytes() {
		t.Errorf("manifest: got %+v, want what the upload was about", m)
	}
	var last snapshot.Progress
	dir := filepath.Join(t.TempDir(), "deep", "db")
	if err := f.store.Download(t.Context(), m, dir, func(p snapshot.Progress) { last = p }); err != nil {
		t.Fatal(err)
	}
	what.expect(t, dir)
	if last != sent {
		t.Errorf("progress at the end of the download: got %+v, want %+v", last, sent)
	}
	if _, err := os.Stat(dir + ".partial"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("partial directory after the download: got %v, want none", err)
	}
	if err := f.store.Download(t.Context(), m, dir, nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("download to a directory that exists: got %v, want ErrExist", err)
	}
}

// A second snapshot sends what is new: a table that was linked again is not even
// read, one under another name is read and not sent.
func TestSecondSnapshotSendsLittle(t *testing.T) {
	f := newFixture(t)
	what := some()
	f.upload(what, 5)
	what["000007.sst"] = what["000004.sst"]
	what["000008.sst"] = random(9, 10)
	m, sent := f.upload(what, 6)
	if sent.Moved != 10 || sent.Done != what.bytes() {
		t.Errorf("progress of the second upload: got %+v, want 10 bytes moved of %d", sent, what.bytes())
	}
	dir := filepath.Join(t.TempDir(), "db")
	if err := f.store.Download(t.Context(), m, dir, nil); err != nil {
		t.Fatal(err)
	}
	what.expect(t, dir)
}

func TestLinkedTableIsNotReadAgain(t *testing.T) {
	f := newFixture(t)
	upload := func(dir string) snapshot.Chunk {
		t.Helper()
		m, err := f.store.Upload(t.Context(), dir, about(1), nil)
		if err != nil {
			t.Fatal(err)
		}
		return m.Files[0].Chunks[1]
	}
	// overwrite changes a file so that only reading it shows.
	overwrite := func(path string, when time.Time) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, random(2, 2*chunk), 0o600), os.Chtimes(path, when, when)); err != nil {
			t.Fatal(err)
		}
	}
	source, linked, other := files{"000004.sst": random(1, 2*chunk)}.write(t), t.TempDir(), t.TempDir()
	path := filepath.Join(source, "000004.sst")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	first := upload(source)
	if err := os.Link(path, filepath.Join(linked, "000004.sst")); err != nil {
		t.Fatal(err)
	}
	overwrite(path, info.ModTime())
	if got := upload(linked); got != first {
		t.Errorf("chunk of a table that was linked: got %v, want %v without reading it", got, first)
	}
	overwrite(filepath.Join(other, "000004.sst"), info.ModTime())
	if got := upload(other); got == first {
		t.Error("chunk of another table of the same name, size and time: got that of the first")
	}
}

// cutAfter ends a context when so many bytes have moved.
func cutAfter(cancel context.CancelFunc, bytes int64) func(snapshot.Progress) {
	return func(p snapshot.Progress) {
		if p.Moved >= bytes {
			cancel()
		}
	}
}

func TestDownloadResumes(t *testing.T) {
	f := newFixture(t)
	what := some()
	m, _ := f.upload(what, 5)
	dir := filepath.Join(t.TempDir(), "db")
	f.store = snapshot.NewStore(f.chunks, f.manifests, snapshot.Options{Parallel: 1}) // the first file is the first there
	ctx, cancel := context.WithCancel(t.Context())
	var before snapshot.Progress
	cut := cutAfter(cancel, 3*chunk)
	err := f.store.Download(ctx, m, dir, func(p snapshot.Progress) { before = p; cut(p) })
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("download that is cut: got %v, want Canceled", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("directory after the cut: got %v, want none", err)
	}
	// What a crash may leave: a torn chunk, a file too long, and one that is not
	// of this snapshot.
	torn := filepath.Join(dir+".partial", "000004.sst")
	data, err := os.ReadFile(torn)
	if err != nil {
		t.Fatal(err)
	}
	data[10] ^= 1
	if err := os.WriteFile(torn, append(data, make([]byte, 9*chunk)...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir+".partial", "other", "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	var after snapshot.Progress
	if err := f.store.Download(t.Context(), m, dir, func(p snapshot.Progress) { after = p }); err != nil {
		t.Fatal(err)
	}
	what.expect(t, dir)
	if most := what.bytes() - before.Moved + chunk; after.Moved > most || after.Done != what.bytes() {
		t.Errorf("progress after %+v: got %+v, want at most %d moved", before, after, most)
	}
}

func TestUploadResumes(t *testing.T) {
	f := newFixture(t)
	what := some()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := f.store.Upload(ctx, what.write(t), about(5), cutAfter(cancel, 3*chunk))
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("upload that is cut: got %v, want Canceled", err)
	}
	if _, err := f.store.Latest(t.Context()); !errors.Is(err, snapshot.ErrNone) {
		t.Errorf("Latest after the cut: got %v, want ErrNone", err)
	}
	if _, sent := f.upload(what, 5); sent.Moved > what.bytes()-3*chunk {
		t.Errorf("progress of the next upload: got %+v, want at most %d moved", sent, what.bytes()-3*chunk)
	}
}
