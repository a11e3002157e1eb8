// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"glimpse/archive"
	"glimpse/archive/archivetest"
	"glimpse/chain"
)

// alike returns transaction hashes that differ after the bytes that the archive
// finds them by.
func alike(last byte) chain.Hash { return chain.Hash{0: 0xaa, 7: 0xbb, 8: last, 31: last} }

// commitOf commits a block with these transactions.
func (s script) commitOf(transactions ...chain.Hash) error {
	s.t.Helper()
	b := s.block()
	b.Transactions = transactions
	return s.db.Commit(b)
}

// A mined transaction is at a place.
type mined struct {
	n     chain.Number
	index int
}

// expectAlike expects these transactions, which are alike, and no other of ten.
func expectAlike(t *testing.T, db *archive.DB, when string, want map[byte]mined) {
	t.Helper()
	r := script{t, db}.reader()
	for last := range byte(10) {
		n, index, ok, err := r.Transaction(alike(last))
		at, known := want[last]
		if err != nil || ok != known || at != (mined{n, index}) {
			t.Errorf("%s, transaction %d: got %d of block %d, %v, %v, want %d of block %d, %v", when, last, index, n, ok, err, at.index, at.n, known)
		}
	}
	if _, err := db.Check(t.Context(), nil); err != nil {
		t.Errorf("%s: %v", when, err)
	}
}

// expectPlaces expects the stored value of the transactions that are alike, nil
// where there is none.
func expectPlaces(t *testing.T, db *archive.DB, when string, want []byte) {
	t.Helper()
	keys, values, err := db.Dump()
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	for i, key := range keys {
		if bytes.Equal(key, txKey(alike(0))) {
			got = values[i]
		}
	}
	if !bytes.Equal(got, want) || (got == nil) != (want == nil) {
		t.Errorf("%s: got %x, want %x", when, got, want)
	}
}

func TestTransactionsThatBeginAlike(t *testing.T) {
	disk := archivetest.NewDisk()
	one, two, three, four := mined{1, 0}, mined{2, 0}, mined{2, 2}, mined{4, 0}
	all := map[byte]mined{1: one, 2: two, 3: three, 4: four}
	t.Run("committed", func(t *testing.T) {
		s := script{t, open(t, disk)}
		if err := errors.Join(
			s.db.Init(id, genesis),
			s.commitOf(alike(1), chain.Hash{1}),           // 1
			s.commitOf(alike(2), chain.Hash{2}, alike(3)), // 2
			s.commitOf(),         // 3
			s.commitOf(alike(4)), // 4
		); err != nil {
			t.Fatal(err)
		}
		expectAlike(t, s.db, "committed", all)
		expectPlaces(t, s.db, "committed", slices.Concat(place(1, 0), place(2, 0), place(2, 2), place(4, 0)))
	})
	t.Run("pruned", func(t *testing.T) {
		db := open(t, disk)
		if err := db.Prune(1); err != nil {
			t.Fatal(err)
		}
		expectAlike(t, db, "pruned", all)
	})
	t.Run("refused", func(t *testing.T) {
		s := script{t, open(t, disk)}
		for name, transactions := range map[string][]chain.Hash{
			"on the chain": {alike(5), alike(3)},
			"in the block": {alike(5), alike(6), alike(5)},
		} {
			if err := s.commitOf(transactions...); err == nil || !strings.Contains(err.Error(), "already") {
				t.Errorf("transaction that is %s: got %v, want a refusal", name, err)
			}
		}
		expectAlike(t, s.db, "after refusals", all)
	})
	t.Run("unwound", func(t *testing.T) {
		s := script{t, open(t, disk)}
		expectAlike(t, s.db, "opened again", all)
		held := s.reader()
		if err := s.db.Unwind(3, nil); err != nil {
			t.Fatal(err)
		}
		expectAlike(t, s.db, "one block less", map[byte]mined{1: one, 2: two, 3: three})
		if err := errors.Join(s.commitOf(alike(7), alike(4)), s.commitOf(alike(8))); err != nil {
			t.Fatal(err)
		}
		expectAlike(t, s.db, "another branch", map[byte]mined{1: one, 2: two, 3: three, 7: {4, 0}, 4: {4, 1}, 8: {5, 0}})
		if err := s.db.Unwind(1, nil); err != nil { // blocks with several and with none, in one step
			t.Fatal(err)
		}
		expectAlike(t, s.db, "four blocks less", map[byte]mined{1: one})
		expectPlaces(t, s.db, "four blocks less", place(1, 0))
		if n, index, ok, err := held.Transaction(alike(4)); (mined{n, index}) != four || !ok || err != nil {
			t.Errorf("from a reader of before: got %d of block %d, %v, %v, want %v", index, n, ok, err, four)
		}
	})
}

// When the last of them goes, so does what they were under.
func TestNoKeyIsLeftWithoutATransaction(t *testing.T) {
	s := newScript(t)
	if err := errors.Join(s.commitOf(alike(1), alike(2)), s.commitOf(alike(3))); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Unwind(0, nil); err != nil {
		t.Fatal(err)
	}
	expectAlike(t, s.db, "unwound", nil)
	expectPlaces(t, s.db, "unwound", nil)
}

func TestFirstBlockOfASparseStoreWithTransactionsThatBeginAlike(t *testing.T) {
	db := open(t, archivetest.NewDisk())
	first := archive.Block{Ref: chain.Ref{Number: 7, Hash: chain.Hash{7}}, Transactions: []chain.Hash{alike(1), alike(2)}}
	if err := db.InitAt(id, first); err != nil {
		t.Fatal(err)
	}
	expectAlike(t, db, "first block", map[byte]mined{1: {7, 0}, 2: {7, 1}})
}

// What says where a transaction is may not be taken for its absence when that
// cannot be read (P2).
func TestTransactionWhosePlaceIsDamagedIsNotAbsent(t *testing.T) {
	for name, damage := range map[string]struct{ key, value []byte }{
		"no receipts":             {join("r", 5), nil},
		"fewer transactions":      {join("r", 5), []byte{0}},
		"a place that is cut":     {txKey(transaction(5)), join(5)},
		"a place above the head":  {txKey(transaction(5)), place(6, 0)},
		"no place under the key":  {txKey(transaction(5)), []byte{}},
		"places that do not rise": {txKey(transaction(5)), slices.Concat(place(5, 0), place(5, 0))},
	} {
		t.Run(name, func(t *testing.T) {
			db, _ := checked(t)
			if err := db.Plant(damage.key, damage.value); err != nil {
				t.Fatal(err)
			}
			if _, _, _, err := (script{t, db}).reader().Transaction(transaction(5)); !errors.Is(err, chain.ErrCorrupt) {
				t.Errorf("Transaction: got %v, want ErrCorrupt", err)
			}
			b := script{t, db}.block()
			b.Transactions = []chain.Hash{transaction(5)}
			if err := db.Commit(b); err == nil {
				t.Error("Commit of it: got none, want an error")
			}
		})
	}
}

// The places of a hash that two blocks list are in order, and yet one too many.
func TestCheckFindsATransactionTwice(t *testing.T) {
	db, _ := checked(t)
	if err := errors.Join(
		db.Plant(join("r", 4), join("\x01", transaction(5), "receipts")),
		db.Plant(txKey(transaction(4)), nil),
		db.Plant(txKey(transaction(5)), slices.Concat(place(4, 0), place(5, 0))),
	); err != nil {
		t.Fatal(err)
	}
	_, err := db.Check(t.Context(), nil)
	if want := "want one place for transaction " + transaction(5).Hex(); !errors.Is(err, chain.ErrCorrupt) || !strings.Contains(err.Error(), want) {
		t.Errorf("Check: got %v, want %q", err, want)
	}
}

// A random history is of little use here if its transactions never meet.
func TestRandomTransactionsBeginAlike(t *testing.T) {
	h := newHistory(t, 1)
	for range 30 {
		b := h.world.Block(h.rng, h.model)
		h.must(h.db.Commit(b))
		h.model.Commit(b)
	}
	keys, values, err := h.db.Dump()
	h.must(err)
	several := 0
	for i, key := range keys {
		if key[0] == 'x' && len(values[i]) > len(place(0, 0)) {
			several++
		}
	}
	if several < 3 {
		t.Errorf("keys with several transactions: got %d, want at least 3", several)
	}
}

func TestFindingATransactionDoesNotAllocate(t *testing.T) {
	s := newScript(t)
	if err := errors.Join(s.commitOf(alike(1), alike(2)), s.commitOf(alike(3))); err != nil {
		t.Fatal(err)
	}
	r := s.reader()
	for name, h := range map[string]chain.Hash{"first of several": alike(1), "last of several": alike(3), "none of several": alike(4), "none": {1}} {
		got := testing.AllocsPerRun(100, func() {
			if _, _, _, err := r.Transaction(h); err != nil {
				t.Error(err)
			}
		})
		if got != 0 && !underRace {
			t.Errorf("%s: got %v allocations, want 0", name, got)
		}
	}
}
