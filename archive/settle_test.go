// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"glimpse/archive"
	"glimpse/archive/archivetest"
	"glimpse/chain"
)

// logsOf returns the names of the logs that a closed store has left.
func logsOf(t *testing.T, fs archive.FS) (logs []string) {
	t.Helper()
	names, err := fs.List("db/log")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".log") {
			logs = append(logs, name)
		}
	}
	return logs
}

// commitBlocks commits n blocks and holds no Reader, so that the store can be
// closed.
func commitBlocks(t *testing.T, db *archive.DB, n, slots int) {
	t.Helper()
	for range n {
		head, _, err := db.Digest()
		if err != nil {
			t.Fatal(err)
		}
		b := archive.Block{
			Ref:    chain.Ref{Number: head.Number + 1, Hash: numbered(uint64(head.Number))},
			Parent: head.Hash,
			Diff:   &chain.Diff{Accounts: []chain.AccountDiff{manySlots(alice, slots)}, Codes: []chain.Code{code}},
		}
		if err := db.Commit(b); err != nil {
			t.Fatal(err)
		}
	}
}

func openToClose(t *testing.T, o archive.Options) *archive.DB {
	t.Helper()
	db, err := archive.Open("db", o)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func TestClosedStoreHasNoLogs(t *testing.T) {
	disk := archivetest.NewDisk()
	o := small
	o.FS = disk.FS
	for range 3 { // new, as it was closed, and after that was done twice
		db := openToClose(t, o)
		if err := db.Init(id, genesis); err != nil {
			t.Fatal(err)
		}
		commitBlocks(t, db, 100, 100) // enough for several logs
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if logs := logsOf(t, disk.FS); len(logs) > 0 {
			t.Errorf("logs after Close: got %v, want none", logs)
		}
	}
	o.ReadOnly = true
	for when, disk := range map[string]*archivetest.Disk{"as it is": disk, "after a crash": disk.Crash(newRand(1))} {
		t.Run(when, func(t *testing.T) {
			o.FS = disk.FS
			db := openToClose(t, o)
			if head, _, err := db.Digest(); head.Number != 300 || err != nil {
				t.Errorf("head: got %d, %v, want 300", head.Number, err)
			}
			checkAndClose(t, db)
		})
	}
}

// A crash after any of the writes that Close makes loses no block.
func TestCrashAtEveryWriteOfClose(t *testing.T) {
	const blocks = 5
	closed := false
	for writes := 0; !closed; writes++ {
		if writes == 1000 {
			t.Fatal("Close with 1000 writes: got an error still")
		}
		t.Run(fmt.Sprintf("writes=%d", writes), func(t *testing.T) {
			disk := archivetest.NewDisk()
			o := small
			o.FS = disk.FS
			db := openToClose(t, o)
			if err := db.Init(id, genesis); err != nil {
				t.Fatal(err)
			}
			commitBlocks(t, db, blocks, 20)
			disk.FailWritesAfter(writes)
			closed = db.Close() == nil
			if logs := logsOf(t, disk.FS); closed && len(logs) > 0 {
				t.Errorf("logs after Close: got %v, want none", logs)
			}
			after := open(t, disk.Crash(newRand(uint64(writes))))
			if head, _, err := after.Digest(); head.Number != blocks || err != nil {
				t.Errorf("head after a crash: got %d, %v, want %d", head.Number, err, blocks)
			}
		})
	}
}

// Side data that was written again and again is there once when it is settled,
// and what is read is the same.
func TestSettledStoreHoldsNothingTwice(t *testing.T) {
	disk := archivetest.NewDisk()
	db := open(t, disk)
	if err := db.Init(id, genesis); err != nil {
		t.Fatal(err)
	}
	commitBlocks(t, db, 3, 100)
	value := make([]byte, 10<<10)
	for range 300 {
		rng := newRand(1)
		for i := range value {
			value[i] = byte(rng.Uint32())
		}
		if err := db.WriteSide([]archive.SideWrite{{Key: []byte("k"), Value: value}}); err != nil {
			t.Fatal(err)
		}
	}
	before := content(t, db)
	if err := db.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := content(t, db); after != before {
		t.Errorf("content: got %s, want %s", after, before)
	}
	names, err := disk.FS.List("db")
	if err != nil {
		t.Fatal(err)
	}
	size := int64(0)
	for _, name := range names {
		if info, err := disk.FS.Stat("db/" + name); err == nil && strings.HasSuffix(name, ".sst") {
			size += info.Size()
		}
	}
	if size > 300<<10 { // 3 MB were written
		t.Errorf("tables: got %d bytes, want about those of one value and three blocks", size)
	}
}

func TestSettleEnds(t *testing.T) {
	t.Run("with its context", func(t *testing.T) {
		s := newScript(t)
		s.commit(write(alice, slot1, 1))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.db.Settle(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want Canceled", err)
		}
	})
	t.Run("on a failing disk", func(t *testing.T) {
		disk := archivetest.NewDisk()
		db := openUnchecked(t, disk)
		if err := db.Init(id, genesis); err != nil {
			t.Fatal(err)
		}
		disk.FailWrites(true)
		defer disk.FailWrites(false)
		if err := db.Settle(t.Context()); err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the disk's error", err)
		}
	})
}
