// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"sync"
	"testing"
	"time"

	"glimpse/archive"
	"glimpse/archive/archivetest"
	"glimpse/chain"
)

func TestReadsDoNotAllocate(t *testing.T) {
	s := newScript(t)
	s.commit(create(alice, true), manySlots(bob, 2000))
	for i := range byte(20) {
		s.commit(write(alice, slot1, 1+i))
	}
	s.commit(wipe(bob))
	if err := s.db.Compact(); err != nil {
		t.Fatal(err)
	}
	s.commit(write(alice, slot2, 1)) // so that the memtable is not empty
	v, err := s.reader().At(11)
	if err != nil {
		t.Fatal(err)
	}
	reads := map[string]func() error{
		"slot":          func() error { _, err := v.Slot(alice, slot1); return err },
		"wiped slot":    func() error { _, err := v.Slot(bob, slot1); return err },
		"absent slot":   func() error { _, err := v.Slot(alice, chain.Slot{1}); return err },
		"account":       func() error { _, err := v.Account(alice); return err },
		"absent":        func() error { _, err := v.Account(chain.Address{7}); return err },
		"code":          func() error { _, err := v.Code(code.Hash); return err },
		"no code":       func() error { _, err := v.Code(chain.Hash{}); return err },
		"open and read": func() error { return openAndRead(s.db) },
	}
	for name, read := range reads {
		t.Run(name, func(t *testing.T) {
			var failed error
			got := testing.AllocsPerRun(200, func() {
				if err := read(); err != nil {
					failed = err
				}
			})
			if failed != nil {
				t.Fatal(failed)
			}
			if got != 0 && !underRace {
				t.Errorf("allocations: got %v, want 0", got)
			}
		})
	}
}

func openAndRead(db *archive.DB) error {
	r, err := db.NewReader()
	if err != nil {
		return err
	}
	defer r.Release()
	v, err := r.At(r.Head().Number)
	if err == nil {
		_, err = v.Slot(alice, slot1)
	}
	return err
}

// Each block writes its own number to two slots, and blocks come and go. A
// Reader must see both slots of one block, and the number of its head (P1, P6).
func TestReadersSeeWholeBlocksWhileWritersWork(t *testing.T) {
	s := newScript(t)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if !seesWholeBlock(t, s.db) {
					return
				}
			}
		})
	}
	for round := range 40 {
		for range 5 {
			n := byte(s.reader().Head().Number + 1)
			s.commit(write(alice, slot1, n), write(bob, slot2, n))
		}
		head := s.reader().Head().Number
		if err := s.db.Unwind(head-chain.Number(round%5), nil); err != nil {
			t.Error(err)
		}
		if err := s.db.Prune(head / 2); err != nil {
			t.Error(err)
		}
	}
	close(done)
	readers.Wait()
}

func seesWholeBlock(t *testing.T, db *archive.DB) bool {
	r, err := db.NewReader()
	if err != nil {
		t.Error(err)
		return false
	}
	defer r.Release()
	for _, n := range []chain.Number{r.Head().Number, r.Oldest()} {
		v, err := r.At(n)
		if err != nil {
			t.Error(err)
			return false
		}
		one, err1 := v.Slot(alice, slot1)
		two, err2 := v.Slot(bob, slot2)
		if want := (chain.Value{31: byte(n)}); err1 != nil || err2 != nil || one != want || two != want {
			t.Errorf("at %d: got %s, %v and %s, %v, want %s in both", n, one, err1, two, err2, want)
			return false
		}
	}
	return true
}

// P4: while a writer waits for the disk, readers come, read and go.
func TestReadersDoNotWaitForAWriter(t *testing.T) {
	disk := archivetest.NewDisk()
	db := open(t, disk)
	if err := db.Init(id, genesis); err != nil {
		t.Fatal(err)
	}
	reached, resume := disk.StallWrites()
	next := chain.Ref{Number: 1, Hash: chain.Hash{1}}
	committed := make(chan error, 1)
	go func() {
		committed <- db.Commit(archive.Block{Ref: next, Parent: genesis.Hash, Diff: &chain.Diff{Accounts: []chain.AccountDiff{create(alice, false)}}})
	}()
	<-reached
	read := make(chan error, 1)
	go func() {
		r, err := db.NewReader()
		if err == nil {
			var v archive.View
			if v, err = r.At(0); err == nil {
				_, err = v.Account(alice)
			}
			r.Release()
		}
		read <- err
	}()
	select {
	case err := <-read:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("a reader waits for the writer")
	}
	resume()
	if err := <-committed; err != nil {
		t.Error(err)
	}
}
