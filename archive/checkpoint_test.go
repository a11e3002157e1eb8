// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"glimpse/archive"
	"glimpse/archive/archivetest"
	"glimpse/chain"
)

// Copies that are made while blocks are committed and unwound are each the store
// at the block that Checkpoint said, whole.
func TestCheckpointWhileCommitsGoOn(t *testing.T) {
	dir := t.TempDir()
	db, err := archive.Open(filepath.Join(dir, "db"), small)
	if err != nil {
		t.Fatal(err)
	}
	defer checkAndClose(t, db)
	if err := db.Init(id, genesis); err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	done := make(chan error, 1) // room for the one result, which is read at the end
	go func() { done <- commitUntil(t, db, &stop) }()
	var copies []archive.Checkpoint
	for i := range 5 {
		at, err := db.Checkpoint(filepath.Join(dir, "copy", string(rune('a'+i))))
		if err != nil {
			t.Fatal(err)
		}
		copies = append(copies, at)
	}
	stop.Store(true)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for i, at := range copies {
		expectCopy(t, filepath.Join(dir, "copy", string(rune('a'+i))), at)
	}
}

// commitUntil commits big blocks, and every so often takes some back.
func commitUntil(t *testing.T, db *archive.DB, stop *atomic.Bool) error {
	head := genesis.Ref
	hash := func(n chain.Number, try int) chain.Hash {
		return chain.Hash{0: byte(n), 1: byte(n >> 8), 2: byte(try), 31: 1}
	}
	for i := 0; !stop.Load(); i++ {
		b := archive.Block{Ref: chain.Ref{Number: head.Number + 1, Hash: hash(head.Number+1, i)}, Parent: head.Hash,
			Diff: &chain.Diff{Accounts: []chain.AccountDiff{manySlots(alice, 200)}, Codes: []chain.Code{code}}}
		if err := db.CommitUnsynced(b); err != nil {
			return err
		}
		head = b.Ref
		if i%20 == 19 {
			to := head.Number - 3
			if err := db.Unwind(to, nil); err != nil {
				return err
			}
			h, err := script{t, db}.hash(to)
			if err != nil {
				return err
			}
			head = chain.Ref{Number: to, Hash: h}
		}
	}
	return nil
}

func (s script) hash(n chain.Number) (chain.Hash, error) {
	r, err := s.db.NewReader()
	if err != nil {
		return chain.Hash{}, err
	}
	defer r.Release()
	return r.Hash(n)
}

func expectCopy(t *testing.T, dir string, want archive.Checkpoint) {
	t.Helper()
	for _, readOnly := range []bool{true, false} {
		o := small
		o.ReadOnly = readOnly
		db, err := archive.Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		head, digest, err := db.Digest()
		if got := (archive.Checkpoint{Head: head, Digest: digest}); got != want || err != nil {
			t.Errorf("copy, read only %v: got %v, %v, want %v", readOnly, got, err, want)
		}
		checkAndClose(t, db)
	}
}

// A copy and what it was made from go different ways, and neither notices.
func TestCheckpointIsAStoreOfItsOwn(t *testing.T) {
	disk := archivetest.NewDisk()
	db := open(t, disk)
	if err := db.Init(id, genesis); err != nil {
		t.Fatal(err)
	}
	s := script{t, db}
	s.commit(create(alice, true), write(bob, slot1, 1))
	if _, err := db.Checkpoint("copy"); err != nil {
		t.Fatal(err)
	}
	o := small
	o.FS = disk.Crash(newRand(1)).FS // all of it is durable
	twin, err := archive.Open("copy", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { checkAndClose(t, twin) })
	sameDigests(t, twin, db)
	s.commit(write(bob, slot1, 2))
	script{t, twin}.commit(write(bob, slot1, 3))
	if err := errors.Join(db.Compact(), twin.Compact()); err != nil {
		t.Fatal(err)
	}
	s.slots(bob, slot1, 0, 0, 1, 2)
	script{t, twin}.slots(bob, slot1, 0, 0, 1, 3)
}

// Whoever copies a checkpoint pays for tables and little else.
func TestCheckpointHasNoLogs(t *testing.T) {
	disk := archivetest.NewDisk()
	db := open(t, disk)
	if err := db.Init(id, genesis); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Checkpoint("copy"); err != nil {
		t.Fatal(err)
	}
	names, err := disk.FS.List("copy")
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	for _, name := range names {
		if strings.HasSuffix(name, ".log") {
			t.Errorf("copy: got the log %s, want none", name)
		}
		if strings.HasSuffix(name, ".sst") {
			tables++
		}
	}
	if tables == 0 {
		t.Errorf("copy: got %v, want a table", names)
	}
}

func TestFailedCheckpointLeavesNothing(t *testing.T) {
	disk := archivetest.NewDisk()
	db := open(t, disk)
	s := script{t, db}
	if err := db.Init(id, genesis); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Checkpoint("db"); !errors.Is(err, os.ErrExist) {
		t.Errorf("checkpoint into a directory that exists: got %v, want ErrExist", err)
	}
	disk.FailWritesTo("copy")
	if _, err := db.Checkpoint("copy"); !errors.Is(err, archivetest.ErrDisk) {
		t.Errorf("checkpoint while writes fail: got %v, want the disk's error", err)
	}
	disk.FailWritesTo("")
	if _, err := disk.FS.Stat("copy"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the failure: got %v, want no directory", err)
	}
	s.commit(write(alice, slot1, 1)) // the store goes on
	if _, err := db.Checkpoint("copy"); err != nil {
		t.Error(err)
	}
}

func TestCheckpointDoesNotWaitForAFailingDisk(t *testing.T) {
	disk := archivetest.NewDisk()
	db := openUnchecked(t, disk)
	if err := db.Init(id, genesis); err != nil {
		t.Fatal(err)
	}
	disk.FailWrites(true)
	defer disk.FailWrites(false)
	if _, err := db.Checkpoint("copy"); err == nil {
		t.Error("checkpoint while writes fail: got no error")
	}
}
