// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"glimpse/archive"
	"glimpse/chain"
	"glimpse/replica/snapshot"
)

// A store that was downloaded is the store that was uploaded, to the last key. It
// logs what each step took: how much a second snapshot sends depends on what was
// compacted meanwhile. GLIMPSE_SNAPSHOT_SLOTS makes the store a big one.
func TestStoreGoesThroughSnapshots(t *testing.T) {
	slots := 20_000
	if s := os.Getenv("GLIMPSE_SNAPSHOT_SLOTS"); s != "" {
		var err error
		if slots, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	f := newFixture(t)
	base := t.TempDir()
	db := openArchive(t, filepath.Join(base, "db"))
	genesis := archive.Block{Ref: chain.Ref{Hash: chain.Hash{1}}, Diff: new(chain.Diff)}
	if err := db.Init(archive.Identity{ChainID: 7, Genesis: genesis.Hash}, genesis); err != nil {
		t.Fatal(err)
	}
	head := fill(t, db, genesis.Ref, slots)
	f.store = snapshot.NewStore(f.chunks, f.manifests, snapshot.Options{})
	uploadArchive(t, f, db, filepath.Join(base, "first"))
	fill(t, db, head, slots/100)
	second := uploadArchive(t, f, db, filepath.Join(base, "second"))
	began := time.Now()
	dir := filepath.Join(base, "replica")
	if err := f.store.Download(t.Context(), second, dir, nil); err != nil {
		t.Fatal(err)
	}
	t.Logf("downloaded %d bytes in %s", second.Bytes(), time.Since(began))
	replica := openArchive(t, dir)
	at, digest, err := replica.Digest()
	if err != nil || at != second.Head || snapshot.Sum(digest) != second.Digest {
		t.Errorf("head of the download: got %s, %s, %v, want %s, %s", at, digest, err, second.Head, second.Digest)
	}
	if got, want := contentOf(t, replica), contentOf(t, db); got != want {
		t.Errorf("content of the download: got %s, want %s", got, want)
	}
}

func openArchive(t *testing.T, dir string) *archive.DB {
	t.Helper()
	db, err := archive.Open(dir, archive.Options{CacheBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// fill adds blocks of 1000 slots.
func fill(t *testing.T, db *archive.DB, head chain.Ref, slots int) chain.Ref {
	t.Helper()
	for i := 0; i < slots; i += 1000 {
		account := chain.AccountDiff{Address: chain.Address{1}}
		for j := range min(1000, slots-i) {
			key := crypto.Keccak256Hash(binary.BigEndian.AppendUint64(nil, uint64(head.Number)<<20+uint64(j)))
			account.Slots = append(account.Slots, chain.SlotDiff{Slot: key, Value: key})
		}
		next := chain.Ref{Number: head.Number + 1, Hash: crypto.Keccak256Hash(head.Hash[:])}
		diff := &chain.Diff{Accounts: []chain.AccountDiff{account}}
		diff.Sort()
		if err := db.CommitUnsynced(archive.Block{Ref: next, Parent: head.Hash, Diff: diff}); err != nil {
			t.Fatal(err)
		}
		head = next
	}
	return head
}

func uploadArchive(t *testing.T, f *fixture, db *archive.DB, dir string) *snapshot.Manifest {
	t.Helper()
	began := time.Now()
	at, err := db.Checkpoint(dir)
	if err != nil {
		t.Fatal(err)
	}
	copied := time.Since(began)
	about := snapshot.Manifest{ChainID: 7, Head: at.Head, Digest: snapshot.Sum(at.Digest)}
	var last snapshot.Progress
	m, err := f.store.Upload(t.Context(), dir, about, func(p snapshot.Progress) { last = p })
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("checkpoint of %d files in %s, uploaded %d of %d bytes in %s", len(m.Files), copied, last.Moved, last.Total, time.Since(began)-copied)
	return m
}

func contentOf(t *testing.T, db *archive.DB) archive.Digest {
	t.Helper()
	r, err := db.NewReader()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	d, err := r.ContentDigest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d
}
