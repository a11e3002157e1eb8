// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"glimpse/archive"
	"glimpse/archive/archivetest"
	"glimpse/chain"
)

func TestOrphanedHashIsKnownAndNotCanonical(t *testing.T) {
	s := newScript(t)
	s.commit(write(alice, slot1, 5))
	orphan := s.reader().Head()
	if err := s.db.Unwind(0, nil); err != nil {
		t.Fatal(err)
	}
	expectOrphan := func(when string) {
		n, canonical, err := s.reader().Number(orphan.Hash)
		if n != 1 || canonical || err != nil {
			t.Errorf("orphan %s: got %d, canonical %v, %v, want 1, not canonical", when, n, canonical, err)
		}
	}
	expectOrphan("above the head")
	other := s.block(write(alice, slot1, 6))
	other.Hash = chain.Hash{1}
	if err := s.db.Commit(other); err != nil {
		t.Fatal(err)
	}
	expectOrphan("beside a block of the new branch")
}

// A transaction that a reorg moves to another block is found where it is now.
func TestTransactionMovesWithAReorg(t *testing.T) {
	s := newScript(t)
	s.commit()
	s.commit()
	moved, dropped := transaction(1), transaction(2)
	if err := s.db.Unwind(0, nil); err != nil {
		t.Fatal(err)
	}
	expect := func(when string, h chain.Hash, wantN chain.Number, wantIndex int, want bool) {
		t.Helper()
		n, index, ok, err := s.reader().Transaction(h)
		if n != wantN || index != wantIndex || ok != want || err != nil {
			t.Errorf("%s: got %d of block %d, %v, %v, want %d of block %d, %v", when, index, n, ok, err, wantIndex, wantN, want)
		}
	}
	expect("after the unwind", moved, 0, 0, false)
	other := s.block()
	other.Transactions = []chain.Hash{{5}}
	if err := s.db.Commit(other); err != nil {
		t.Fatal(err)
	}
	other = s.block()
	other.Transactions = []chain.Hash{{6}, moved}
	if err := s.db.Commit(other); err != nil {
		t.Fatal(err)
	}
	expect("in the new branch", moved, 2, 1, true)
	expect("not in the new branch", dropped, 0, 0, false)
}

func TestCommitRefusesWhatItCouldNotGiveBack(t *testing.T) {
	s := newScript(t)
	s.commit(write(alice, slot1, 1))
	foreign := chain.NewCode([]byte("never deployed"))
	tests := []struct {
		name   string
		change func(*archive.Block)
		want   error
	}{
		{"parent that is not the head", func(b *archive.Block) { b.Parent = chain.Hash{7} }, archive.ErrParent},
		{"number that does not follow", func(b *archive.Block) { b.Number++ }, archive.ErrParent},
		{"no diff", func(b *archive.Block) { b.Diff = nil }, nil},
		{"accounts out of order", func(b *archive.Block) {
			b.Diff.Accounts = []chain.AccountDiff{write(bob, slot1, 1), write(alice, slot1, 1)}
		}, chain.ErrDiff},
		{"one slot twice", func(b *archive.Block) {
			d := &b.Diff.Accounts[0]
			d.Slots = append(d.Slots, d.Slots...)
		}, chain.ErrDiff},
		{"zero slot after a wipe", func(b *archive.Block) {
			b.Diff.Accounts = []chain.AccountDiff{wipeAndWrite(alice, slot1, 0)}
		}, chain.ErrDiff},
		{"account without a change", func(b *archive.Block) { b.Diff.Accounts[0].Slots = nil }, chain.ErrDiff},
		{"account that is not marked as changed", func(b *archive.Block) { b.Diff.Accounts[0].Account.Nonce = 1 }, chain.ErrDiff},
		{"account with a balance that does not exist", func(b *archive.Block) {
			b.Diff.Accounts[0].Changed = true
			b.Diff.Accounts[0].Account.Nonce = 1
		}, chain.ErrDiff},
		{"code under another hash", func(b *archive.Block) {
			b.Diff.Codes = []chain.Code{{Hash: chain.Hash{1}, Bytes: []byte{1}}}
		}, chain.ErrDiff},
		{"transaction that the chain has", func(b *archive.Block) { b.Transactions = []chain.Hash{transaction(1)} }, nil},
		{"one transaction twice", func(b *archive.Block) { b.Transactions = []chain.Hash{{1}, {1}} }, nil},
		{"account with a code that nobody gave", func(b *archive.Block) {
			b.Diff.Accounts[0].Changed = true
			b.Diff.Accounts[0].Account = chain.Account{Exists: true, CodeHash: foreign.Hash}
		}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := s.block(write(alice, slot1, 2))
			tt.change(&b)
			err := s.db.Commit(b)
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("Commit: got %v, want error %v", err, tt.want)
			}
			if head := s.reader().Head().Number; head != 1 {
				t.Errorf("head: got %d, want 1 as before", head)
			}
		})
	}
}

func TestInit(t *testing.T) {
	s := newScript(t)
	if err := s.db.Init(id, genesis); err != nil {
		t.Errorf("Init with the same genesis: got %v, want nil", err)
	}
	other := id
	other.Genesis = chain.Hash{9}
	err := s.db.Init(other, archive.Block{Ref: chain.Ref{Hash: other.Genesis}, Diff: new(chain.Diff)})
	if !errors.Is(err, archive.ErrGenesis) ||
		!strings.Contains(err.Error(), id.Genesis.Hex()) || !strings.Contains(err.Error(), other.Genesis.Hex()) {
		t.Errorf("Init with another genesis: got %v, want ErrGenesis naming both", err)
	}
	other = id
	other.ChainID++
	if err := s.db.Init(other, genesis); !errors.Is(err, archive.ErrGenesis) {
		t.Errorf("Init with another chain id: got %v, want ErrGenesis", err)
	}
}

func TestEmptyStoreSaysSo(t *testing.T) {
	db := open(t, archivetest.NewDisk())
	if _, ok := db.Identity(); ok {
		t.Error("Identity: got one, want none")
	}
	if _, err := db.NewReader(); !errors.Is(err, archive.ErrEmpty) {
		t.Errorf("NewReader: got %v, want ErrEmpty", err)
	}
	for name, write := range writes(genesis) {
		if err := write(db); name != "Sync" && !errors.Is(err, archive.ErrEmpty) {
			t.Errorf("%s: got %v, want ErrEmpty", name, err)
		}
	}
}

func TestReadOnlyNeedsAStore(t *testing.T) {
	disk := archivetest.NewDisk()
	o := archive.Options{FS: disk.FS, ReadOnly: true}
	if _, err := archive.Open("nowhere", o); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open without a directory: got %v, want that it does not exist", err)
	}
	if err := disk.FS.MkdirAll("hollow", 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Open("hollow", o); !errors.Is(err, archive.ErrEmpty) {
		t.Errorf("Open of an empty directory: got %v, want ErrEmpty", err)
	}
}

// writes are all the ways to write, by name.
func writes(b archive.Block) map[string]func(*archive.DB) error {
	return map[string]func(*archive.DB) error{
		"Commit":         func(db *archive.DB) error { return db.Commit(b) },
		"CommitUnsynced": func(db *archive.DB) error { return db.CommitUnsynced(b) },
		"Unwind":         func(db *archive.DB) error { return db.Unwind(0, nil) },
		"Prune":          func(db *archive.DB) error { return db.Prune(1) },
		"SetTags":        func(db *archive.DB) error { return db.SetTags(nil, nil) },
		"WriteSide":      func(db *archive.DB) error { return db.WriteSide(nil) },
		"Checkpoint":     func(db *archive.DB) error { _, err := db.Checkpoint("copy"); return err },
		"Sync":           func(db *archive.DB) error { return db.Sync() },
	}
}

func TestClosedStoreSaysSo(t *testing.T) {
	s := newScript(t)
	b := s.block(write(alice, slot1, 1))
	disk := archivetest.NewDisk()
	db := open(t, disk)
	if err := errors.Join(db.Init(id, genesis), db.Close()); err != nil {
		t.Fatal(err)
	}
	for name, write := range writes(b) {
		if err := write(db); !errors.Is(err, archive.ErrClosed) {
			t.Errorf("%s: got %v, want ErrClosed", name, err)
		}
	}
	if _, err := db.NewReader(); !errors.Is(err, archive.ErrClosed) {
		t.Errorf("NewReader: got %v, want ErrClosed", err)
	}
}

func TestReadOnlyStoreRefusesWrites(t *testing.T) {
	disk := archivetest.NewDisk()
	db := open(t, disk)
	if err := errors.Join(db.Init(id, genesis), db.Close()); err != nil {
		t.Fatal(err)
	}
	db, err := archive.Open("db", archive.Options{FS: disk.FS, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer checkAndClose(t, db)
	for name, write := range writes(genesis) {
		if err := write(db); !errors.Is(err, archive.ErrReadOnly) {
			t.Errorf("%s: got %v, want ErrReadOnly", name, err)
		}
	}
}

func TestOpenRefusesADirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	db, err := archive.Open(dir, small)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := archive.Open(dir, small); !errors.Is(err, archive.ErrLocked) {
		t.Errorf("second Open: got %v, want ErrLocked", err)
	}
}

// Only what this program writes is read, by whatever it is opened for.
func TestOpenRefusesAnotherFormat(t *testing.T) {
	tests := []struct {
		name   string
		format []byte
		want   string
	}{
		{"older", join(5), "0000000000000005, this program reads 7 and 8"},
		{"older and sparse", join(6), "0000000000000006, this program reads 7 and 8"},
		{"newer", join(9), "0000000000000009, this program reads 7 and 8"},
		{"of no number", []byte{7}, "07, this program reads 7 and 8"},
		{"none", nil, "it has none"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			disk := archivetest.NewDisk()
			db := openUnchecked(t, disk)
			if err := errors.Join(db.Init(id, genesis), db.PlantFormat(tt.format), db.Close()); err != nil {
				t.Fatal(err)
			}
			for _, readOnly := range []bool{false, true} {
				_, err := archive.Open("db", archive.Options{FS: disk.FS, ReadOnly: readOnly})
				if !errors.Is(err, archive.ErrFormat) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("Open, read-only %v: got %v, want ErrFormat: %s", readOnly, err, tt.want)
				}
			}
		})
	}
}

func TestCloseRefusesWhileReadersAreHeld(t *testing.T) {
	db := open(t, archivetest.NewDisk())
	if err := db.Init(id, genesis); err != nil {
		t.Fatal(err)
	}
	r, err := db.NewReader()
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err == nil || !strings.Contains(err.Error(), "1 readers") {
		t.Errorf("Close with a held reader: got %v, want a refusal", err)
	}
	if _, err := r.Hash(0); err != nil {
		t.Errorf("read after the refused Close: got %v, want none", err)
	}
	r.Release()
	if r.Retain() {
		t.Error("Retain after the last Release: got true, want false")
	}
	if err := db.Close(); err != nil {
		t.Errorf("Close: got %v, want nil", err)
	}
}

func TestTagsMustBeCanonical(t *testing.T) {
	s := newScript(t)
	s.commit()
	tests := []struct {
		name string
		ref  chain.Ref
		want chain.Reason
	}{
		{"block after the head", chain.Ref{Number: 2}, chain.Future},
		{"other hash", chain.Ref{Number: 1, Hash: chain.Hash{1}}, chain.NotCanonical},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var miss *chain.Miss
			if err := s.db.SetTags(nil, &tt.ref); !errors.As(err, &miss) || miss.Reason != tt.want {
				t.Errorf("SetTags: got %v, want a miss: %s", err, tt.want)
			}
		})
	}
}

func TestUnwindAndPruneOutsideTheRangeAreMisses(t *testing.T) {
	s := newScript(t)
	for range 4 {
		s.commit()
	}
	if err := s.db.Prune(2); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		err  error
		want chain.Miss
	}{
		{"unwind below the oldest", s.db.Unwind(1, nil), chain.Miss{Reason: chain.Pruned, Oldest: 2, Latest: 4}},
		{"unwind above the head", s.db.Unwind(5, nil), chain.Miss{Reason: chain.Future, Oldest: 2, Latest: 4}},
		{"prune above the head", s.db.Prune(5), chain.Miss{Reason: chain.Future, Oldest: 2, Latest: 4}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var miss *chain.Miss
			if !errors.As(tt.err, &miss) || *miss != tt.want {
				t.Errorf("got %v, want %v", tt.err, &tt.want)
			}
		})
	}
	if err := s.db.Prune(1); err != nil {
		t.Errorf("prune below the oldest: got %v, want nothing done", err)
	}
}
