// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"glimpse/archive"
	"glimpse/archive/archivetest"
	"glimpse/chain"
)

func TestSizesAreThoseOfTheFiles(t *testing.T) {
	dir := t.TempDir()
	db, err := archive.Open(dir, small)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := db.Sizes(); !errors.Is(err, archive.ErrEmpty) {
		t.Errorf("before Init: got %+v, %v, want ErrEmpty", got, err)
	}
	if err := db.Init(id, genesis); err != nil {
		t.Fatal(err)
	}
	held, err := db.NewReader()
	if err != nil {
		t.Fatal(err)
	}
	commitEmpty(t, db, held.Head())
	got, err := db.Sizes()
	if err != nil {
		t.Fatal(err)
	}
	if got.Readers != 2 {
		t.Errorf("readers: got %d, want the current one and the one held", got.Readers)
	}
	if got.Memtables == 0 || got.Log == 0 {
		t.Errorf("after a commit: got %+v, want something in memtables and log", got)
	}
	if files := diskUsage(t, filepath.Join(dir, "log")); got.Log > 2*files || files > 2*got.Log {
		t.Errorf("log: got %d bytes, want about the %d of its files", got.Log, files)
	}
	if files := diskUsage(t, dir); got.Disk < got.Log || got.Disk > 2*files || files > 2*got.Disk {
		t.Errorf("disk: got %d bytes, want about the %d of all files", got.Disk, files)
	}
	held.Release()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := db.Sizes(); !errors.Is(err, archive.ErrClosed) {
		t.Errorf("after Close: got %+v, %v, want ErrClosed", got, err)
	}
}

// commitEmpty commits a block without a change and returns it.
func commitEmpty(t *testing.T, db *archive.DB, parent chain.Ref) chain.Ref {
	t.Helper()
	next := chain.Ref{Number: parent.Number + 1, Hash: chain.Hash{byte(parent.Number + 1), 0xe}}
	if err := db.Commit(archive.Block{Ref: next, Parent: parent.Hash, Diff: new(chain.Diff)}); err != nil {
		t.Error(err)
	}
	return next
}

// diskUsage returns the bytes of all files below dir.
func diskUsage(t *testing.T, dir string) (sum uint64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += uint64(info.Size())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// Somebody who scrapes must not crash a node that stops.
func TestSizesWhileTheStoreIsClosed(t *testing.T) {
	s := newScript(t)
	head := genesis.Ref
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				if _, err := s.db.Sizes(); err != nil {
					return
				}
			}
		})
	}
	for range 20 {
		head = commitEmpty(t, s.db, head)
	}
	// Close refuses while somebody is within Sizes, and may be called again.
	for s.db.Close() != nil {
	}
	wg.Wait()
}

// A disk that holds writes up is when sizes are looked at (P4).
func TestSizesDoNotWaitForTheDisk(t *testing.T) {
	disk := archivetest.NewDisk()
	db := open(t, disk)
	if err := db.Init(id, genesis); err != nil {
		t.Fatal(err)
	}
	reached, resume := disk.StallWrites()
	committed := make(chan struct{})
	go func() {
		defer close(committed)
		commitEmpty(t, db, genesis.Ref)
	}()
	<-reached
	sized := make(chan error, 1)
	go func() {
		_, err := db.Sizes()
		sized <- err
	}()
	select {
	case err := <-sized:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("Sizes waits for the writer")
	}
	resume()
	<-committed
}
