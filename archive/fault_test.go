// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"

	"glimpse/archive"
	"glimpse/archive/archivetest"
	"glimpse/chain"
)

// manySlots writes so many slots that opening a store brings few of them into
// the cache.
func manySlots(a chain.Address, n int) chain.AccountDiff {
	d := create(a, true)
	for i := range uint64(n) {
		s := chain.SlotDiff{Value: crypto.Keccak256Hash(binary.BigEndian.AppendUint64(nil, i))}
		binary.BigEndian.PutUint64(s.Slot[24:], i)
		d.Slots = append(d.Slots, s)
	}
	return d
}

func manyTransactions(n int) (hashes []chain.Hash) {
	for i := range uint64(n) {
		hashes = append(hashes, crypto.Keccak256Hash(binary.BigEndian.AppendUint64(nil, i)))
	}
	return hashes
}

// reads are all the ways to read, by name, each of something that exists.
func reads(hash chain.Hash) map[string]func(*archive.Reader, archive.View) error {
	return map[string]func(*archive.Reader, archive.View) error{
		"View.Account": func(_ *archive.Reader, v archive.View) error { _, err := v.Account(alice); return err },
		"View.Slot":    func(_ *archive.Reader, v archive.View) error { _, err := v.Slot(alice, slot1); return err },
		"View.Code":    func(_ *archive.Reader, v archive.View) error { _, err := v.Code(code.Hash); return err },
		"Number":       func(r *archive.Reader, _ archive.View) error { _, _, err := r.Number(hash); return err },
		"Hash":         func(r *archive.Reader, _ archive.View) error { _, err := r.Hash(2); return err },
		"Header":       func(r *archive.Reader, _ archive.View) error { _, err := r.Header(2); return err },
		"Body":         func(r *archive.Reader, _ archive.View) error { _, err := r.Body(2); return err },
		"Diff":         func(r *archive.Reader, _ archive.View) error { _, err := r.Diff(2); return err },
		"Digest":       func(r *archive.Reader, _ archive.View) error { _, err := r.Digest(1); return err },
		"ContentDigest": func(r *archive.Reader, _ archive.View) error {
			_, err := r.ContentDigest(context.Background())
			return err
		},
		"Receipts": func(r *archive.Reader, _ archive.View) error { _, err := r.Receipts(2); return err },
		"Transaction": func(r *archive.Reader, _ archive.View) error {
			_, _, _, err := r.Transaction(manyTransactions(1)[0])
			return err
		},
		"Side": func(r *archive.Reader, _ archive.View) error { _, _, err := r.Side([]byte("k")); return err },
		"Slots": func(r *archive.Reader, _ archive.View) error {
			_, _, err := r.Slots(alice, 1, nil, 1000)
			return err
		},
		"Accounts": func(r *archive.Reader, _ archive.View) error {
			_, _, err := r.Accounts(1, nil, 10)
			return err
		},
		"SlotHistory": func(r *archive.Reader, _ archive.View) error {
			_, _, err := r.SlotHistory(alice, slot1, 0, 2, 10)
			return err
		},
		"CodeHistory": func(r *archive.Reader, _ archive.View) error {
			_, _, err := r.CodeHistory(alice, 0, 2, 10)
			return err
		},
	}
}

// A read that failed is an error, never a zero (P2).
func TestReadErrorIsNeverAValue(t *testing.T) {
	big := make([]byte, 1<<14)
	hash := chain.Hash{2}
	for name, read := range reads(hash) {
		t.Run(name, func(t *testing.T) {
			disk := archivetest.NewDisk()
			db := open(t, disk)
			b1 := archive.Block{Ref: chain.Ref{Number: 1, Hash: chain.Hash{1}}, Parent: genesis.Hash,
				Diff: &chain.Diff{Accounts: []chain.AccountDiff{manySlots(alice, 500)}, Codes: []chain.Code{code}}}
			b2 := archive.Block{Ref: chain.Ref{Number: 2, Hash: hash}, Parent: b1.Hash, Header: big, Body: big,
				Receipts: big, Transactions: manyTransactions(500),
				Diff: &chain.Diff{Accounts: []chain.AccountDiff{wipe(alice), manySlots(bob, 500)}, Codes: []chain.Code{code}},
				Side: []archive.SideWrite{{Key: []byte("k"), Value: big}}}
			err := errors.Join(db.Init(id, genesis), db.Commit(b1), db.Commit(b2), db.Compact(), db.Close())
			if err != nil {
				t.Fatal(err)
			}
			db = open(t, disk) // with an empty cache
			r, err := db.NewReader()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Release()
			v, err := r.At(1)
			if err != nil {
				t.Fatal(err)
			}
			disk.FailReads(true)
			if err := read(r, v); !errors.Is(err, archivetest.ErrDisk) {
				t.Errorf("while reads fail: got %v, want the disk's error", err)
			}
			disk.FailReads(false)
			if err := read(r, v); err != nil {
				t.Errorf("when reads work again: got %v, want none", err)
			}
		})
	}
}

func TestFailedCommitLeavesThePreviousBlock(t *testing.T) {
	commits := map[string]func(*archive.DB, archive.Block) error{
		"synced": (*archive.DB).Commit,
		"unsynced, then synced": func(db *archive.DB, b archive.Block) error {
			return errors.Join(db.CommitUnsynced(b), db.Sync())
		},
	}
	for name, commit := range commits {
		t.Run(name, func(t *testing.T) {
			disk := archivetest.NewDisk()
			db := openUnchecked(t, disk)
			s := script{t, db}
			if err := db.Init(id, genesis); err != nil {
				t.Fatal(err)
			}
			s.commit(write(alice, slot1, 5))
			next := s.block(write(alice, slot1, 6))
			disk.FailWrites(true)
			if err := commit(db, next); err == nil {
				t.Fatal("commit while writes fail: got no error")
			}
			disk.FailWrites(false)
			s.slots(alice, slot1, 0, 0, 5)
			for name, write := range writes(next) {
				if err := write(db); !errors.Is(err, archivetest.ErrDisk) {
					t.Errorf("%s after a failed write: got %v, want a refusal for the disk's error", name, err)
				}
			}
			reopened := open(t, disk.Crash(newRand(1)))
			script{t, reopened}.slots(alice, slot1, 0, 0, 5)
		})
	}
}

// Commits that do not wait for the log must still learn that it fails, and
// whatever Pebble was doing, reads go on and the disk holds whole blocks.
func TestDiskThatFailsAtAnyMoment(t *testing.T) {
	for seed := range uint64(15) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			rng := newRand(seed)
			disk := archivetest.NewDisk()
			db := openUnchecked(t, disk)
			if err := db.Init(id, genesis); err != nil {
				t.Fatal(err)
			}
			s := script{t, db}
			working, synced := rng.IntN(40), chain.Number(0)
			for i := 0; ; i++ {
				if i == 10_000 {
					t.Fatal("10000 commits to a failing disk: got no error")
				}
				b := s.block(manySlots(alice, 1+rng.IntN(300)))
				commit := db.CommitUnsynced
				if i < working && rng.IntN(4) == 0 {
					commit = db.Commit
					synced = b.Number
				}
				disk.FailWrites(i >= working)
				if commit(b) != nil {
					break
				}
			}
			if _, err := s.reader().Hash(synced); err != nil {
				t.Errorf("read after the failed write: got %v, want none", err)
			}
			disk.FailWrites(false)
			reopened := script{t, open(t, disk.Crash(rng))}
			if head := reopened.reader().Head().Number; head < synced {
				t.Errorf("head after a crash: got %d, want at least the synced %d", head, synced)
			}
		})
	}
}

// openUnchecked opens a store that is only closed at the end of the test.
func openUnchecked(t testing.TB, disk *archivetest.Disk) *archive.DB {
	t.Helper()
	o := small
	o.FS = disk.FS
	db, err := archive.Open("db", o)
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

func TestDamagedFileIsCorruption(t *testing.T) {
	disk := archivetest.NewDisk()
	db := open(t, disk)
	b := archive.Block{Ref: chain.Ref{Number: 1, Hash: chain.Hash{1}}, Parent: genesis.Hash,
		Diff: &chain.Diff{Accounts: []chain.AccountDiff{manySlots(alice, 5000)}, Codes: []chain.Code{code}}}
	if err := errors.Join(db.Init(id, genesis), db.Commit(b), db.Compact(), db.Close()); err != nil {
		t.Fatal(err)
	}
	if err := disk.Damage("db", ".sst", 0.6); err != nil {
		t.Fatal(err)
	}
	db = openUnchecked(t, disk)
	_, err := db.Check(t.Context(), nil)
	if !errors.Is(err, chain.ErrCorrupt) {
		t.Errorf("Check: got %v, want ErrCorrupt", err)
	}
	if err := db.Commit(archive.Block{}); !errors.Is(err, chain.ErrCorrupt) {
		t.Errorf("Commit after corruption was met: got %v, want ErrCorrupt", err)
	}
}
