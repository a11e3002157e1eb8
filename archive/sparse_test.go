// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"glimpse/archive"
	"glimpse/archive/archivetest"
	"glimpse/chain"
)

// begin is the first block of a sparse script.
var begin = archive.Block{
	Ref:          chain.Ref{Number: 7, Hash: chain.Hash{0: 7}},
	Parent:       chain.Hash{0: 6},
	Header:       []byte("head"),
	Transactions: []chain.Hash{transaction(7)},
}

func newSparse(t testing.TB) script {
	t.Helper()
	db := open(t, archivetest.NewDisk())
	if err := db.InitAt(id, begin); err != nil {
		t.Fatal(err)
	}
	return script{t, db}
}

func (s script) keep(f chain.Facts) {
	s.t.Helper()
	if err := s.db.KeepOrigin(&f); err != nil {
		s.t.Fatal(err)
	}
}

func slotFact(a chain.Address, s chain.Slot, v byte) chain.Facts {
	return chain.Facts{Slots: []chain.SlotFact{{Address: a, Slot: s, Value: chain.Value{31: v}}}}
}

func accountFact(a chain.Address, account chain.Account, codes ...chain.Code) chain.Facts {
	return chain.Facts{Accounts: []chain.AccountFact{{Address: a, Account: account}}, Codes: codes}
}

var contract = chain.Account{Exists: true, Nonce: 1, CodeHash: code.Hash}

// unknown expects that a slot is not known at these blocks.
func (s script) unknown(a chain.Address, slot chain.Slot, blocks ...chain.Number) {
	s.t.Helper()
	r := s.reader()
	for _, n := range blocks {
		v, err := r.At(n)
		if err != nil {
			s.t.Fatal(err)
		}
		if got, err := v.Slot(a, slot); !errors.Is(err, chain.ErrUnknown) {
			s.t.Errorf("slot at %d: got %s, %v, want ErrUnknown", n, got, err)
		}
	}
}

func TestSparseStoreKnowsWhatItWasTold(t *testing.T) {
	s := newSparse(t)
	old := s.reader()
	s.commit(write(alice, slot1, 5))
	s.commit(wipe(alice))
	s.unknown(alice, slot1, 7)
	s.unknown(alice, slot2, 7, 8)
	s.slots(alice, slot1, 8, 5, 0)
	s.slots(alice, slot2, 9, 0) // wiped
	s.keep(slotFact(alice, slot1, 3))
	s.keep(slotFact(alice, slot2, 0))
	s.slots(alice, slot1, 7, 3, 5, 0)
	s.slots(alice, slot2, 7, 0, 0, 0)
	v, err := old.At(7)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := v.Slot(alice, slot1); err != nil || got != (chain.Value{31: 3}) {
		t.Errorf("a Reader from before: got %s, %v, want 3", got, err)
	}
}

// A wipe of an account without known storage is what makes its slots known.
func TestSparseStoreMarksEveryWipe(t *testing.T) {
	s := newSparse(t)
	s.keep(slotFact(alice, slot1, 3))
	s.commit(wipe(alice))
	s.slots(alice, slot1, 7, 3, 0)
	s.slots(alice, slot2, 8, 0)
	s.unknown(alice, slot2, 7)
}

// What hides the first block must outlive pruning, even where it is absence.
func TestPruningASparseStoreKeepsAbsence(t *testing.T) {
	s := newSparse(t)
	s.keep(slotFact(alice, slot1, 3))
	s.keep(slotFact(bob, slot1, 4))
	s.keep(accountFact(bob, contract, code))
	s.commit(write(alice, slot1, 0))
	s.commit(wipe(bob))
	s.commit()
	for oldest := range chain.Number(3) {
		if err := s.db.Prune(8 + oldest); err != nil {
			t.Fatal(err)
		}
		s.slots(alice, slot1, 10, 0)
		s.slots(bob, slot1, 10, 0)
		s.slots(bob, slot2, 10, 0)
		v, err := s.reader().At(10)
		if err != nil {
			t.Fatal(err)
		}
		if a, err := v.Account(bob); err != nil || a.Exists {
			t.Errorf("account after pruning to %d: got %v, %v, want none", 8+oldest, a, err)
		}
		if _, err := s.db.Check(t.Context(), nil); err != nil {
			t.Errorf("check after pruning to %d: %v", 8+oldest, err)
		}
	}
}

// A code that a block brought belongs to the first block as soon as an account
// had it there, and stays when that block goes.
func TestUnwindLeavesTheCodeOfTheFirstBlock(t *testing.T) {
	s := newSparse(t)
	s.commit(create(alice, true))
	s.keep(accountFact(bob, contract)) // has the code of alice
	if err := s.db.Unwind(7, nil); err != nil {
		t.Fatal(err)
	}
	v, err := s.reader().At(7)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := v.Code(code.Hash); err != nil || !bytes.Equal(got, code.Bytes) {
		t.Errorf("code: got %x, %v, want %x", got, err, code.Bytes)
	}
	if got, err := v.Account(bob); err != nil || got != contract {
		t.Errorf("account: got %v, %v, want %v", got, err, contract)
	}
	if _, err := s.db.Check(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestCodeIsKnownToReadersFromBefore(t *testing.T) {
	s := newSparse(t)
	old := s.reader()
	s.keep(accountFact(bob, contract, code))
	v, err := old.At(7)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := v.Code(code.Hash); err != nil || !bytes.Equal(got, code.Bytes) {
		t.Errorf("code: got %x, %v, want %x", got, err, code.Bytes)
	}
}

// Storage of an account that does not exist is asked for, unless it has code
// since: there are accounts with storage and nothing else.
func TestOnlyNewContractsHaveNoOldStorage(t *testing.T) {
	s := newSparse(t)
	s.keep(accountFact(alice, chain.Account{}))
	s.commit(create(alice, false))
	s.commit(create(alice, true))
	s.unknown(alice, slot1, 7, 8)
	s.slots(alice, slot1, 9, 0)
	s.keep(accountFact(bob, contract, code))
	s.commit(create(bob, true))
	s.unknown(bob, slot1, 10)
	for n, complete := range map[chain.Number]bool{7: false, 8: false, 9: true, 10: true} {
		_, _, err := s.reader().Slots(alice, n, nil, 10)
		if complete && err != nil || !complete && !errors.Is(err, chain.ErrUnknown) {
			t.Errorf("list of slots at %d: got %v, want complete %v", n, err, complete)
		}
	}
}

func TestBlocksBeforeTheFirstAreMisses(t *testing.T) {
	s := newSparse(t)
	s.commit()
	r := s.reader()
	want := chain.Miss{Reason: chain.Pruned, Oldest: 7, Latest: 8}
	_, errHash := r.Hash(6)
	_, errHeader := r.Header(6)
	_, errReceipts := r.Receipts(6)
	_, errView := r.At(6)
	for name, err := range map[string]error{"hash": errHash, "header": errHeader, "receipts": errReceipts,
		"view": errView, "unwind": s.db.Unwind(6, nil)} {
		var miss *chain.Miss
		if !errors.As(err, &miss) || *miss != want {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	before := chain.Ref{Number: 3, Hash: chain.Hash{3}}
	if err := s.db.SetTags(nil, &before); err != nil {
		t.Errorf("a final block before the first: got %v, want none", err)
	}
	if got, ok := s.reader().Finalized(); !ok || got != before {
		t.Errorf("finalized: got %v, %v, want %v", got, ok, before)
	}
}

func TestInitAtRefusals(t *testing.T) {
	changed := begin
	changed.Diff = &chain.Diff{Accounts: []chain.AccountDiff{write(alice, slot1, 1)}}
	twice := begin
	twice.Transactions = []chain.Hash{{1}, {1}}
	tests := []struct {
		name string
		init func(*archive.DB) error
		want error // nil is success
	}{
		{"the first time", func(db *archive.DB) error { return db.InitAt(id, begin) }, nil},
		{"again, at another block", func(db *archive.DB) error {
			return errors.Join(db.InitAt(id, begin), db.InitAt(id, archive.Block{Ref: chain.Ref{Number: 9}}))
		}, nil},
		{"on a store that begins with genesis", func(db *archive.DB) error {
			return errors.Join(db.Init(id, genesis), db.InitAt(id, begin))
		}, nil},
		{"genesis on a sparse store", func(db *archive.DB) error {
			return errors.Join(db.InitAt(id, begin), db.Init(id, genesis))
		}, archive.ErrSparse},
		{"on a store of another chain", func(db *archive.DB) error {
			return errors.Join(db.InitAt(id, begin), db.InitAt(archive.Identity{ChainID: 2, Genesis: id.Genesis}, begin))
		}, archive.ErrGenesis},
		{"at another genesis", func(db *archive.DB) error {
			return db.InitAt(id, archive.Block{Ref: chain.Ref{Hash: chain.Hash{1}}})
		}, archive.ErrGenesis},
		{"with changes", func(db *archive.DB) error { return db.InitAt(id, changed) }, chain.ErrDiff},
		{"with one transaction twice", func(db *archive.DB) error { return db.InitAt(id, twice) }, errAny},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.init(open(t, archivetest.NewDisk()))
			if tt.want == nil && err != nil || tt.want == errAny && err == nil ||
				tt.want != nil && tt.want != errAny && !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

var errAny = errors.New("any error")

func TestKeepOriginRefusals(t *testing.T) {
	told := slotFact(alice, slot1, 3)
	tests := []struct {
		name  string
		facts chain.Facts
		want  error
	}{
		{"the same again", told, nil},
		{"another value", slotFact(alice, slot1, 4), archive.ErrContradiction},
		{"zero where there was a value", slotFact(alice, slot1, 0), archive.ErrContradiction},
		{"a value where there was zero", slotFact(alice, slot2, 1), archive.ErrContradiction},
		{"an account that exists where there was none", accountFact(bob, chain.Account{Exists: true}), archive.ErrContradiction},
		{"an account whose code is not known", accountFact(alice, contract), errAny},
		{"a code under another hash", accountFact(alice, contract, chain.Code{Hash: code.Hash, Bytes: []byte("x")}), errAny},
		{"an account with values that does not exist", accountFact(alice, chain.Account{Nonce: 1}), errAny},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSparse(t)
			s.keep(told)
			s.keep(slotFact(alice, slot2, 0))
			s.keep(accountFact(bob, chain.Account{}))
			other := slotFact(bob, slot1, 9) // nothing of a refused batch is kept
			tt.facts.Slots = append(other.Slots, tt.facts.Slots...)
			err := s.db.KeepOrigin(&tt.facts)
			if tt.want == nil && err != nil || tt.want == errAny && err == nil ||
				tt.want != nil && tt.want != errAny && !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			s.slots(alice, slot1, 7, 3)
			if tt.want != nil {
				s.unknown(bob, slot1, 7)
			}
		})
	}
	if err := newScript(t).db.KeepOrigin(&told); err == nil {
		t.Error("KeepOrigin of a store that begins with genesis: got no error")
	}
}

// A read of a fact that failed is the disk's error: neither unknown, which
// would be asked for again, nor a value (P2).
func TestReadErrorOfAFactIsNotUnknown(t *testing.T) {
	disk := archivetest.NewDisk()
	db := open(t, disk)
	f := chain.Facts{Slots: []chain.SlotFact{}}
	for _, s := range manySlots(alice, 2000).Slots {
		f.Slots = append(f.Slots, chain.SlotFact{Address: alice, Slot: s.Slot, Value: s.Value})
	}
	f.Accounts = accountFact(alice, contract).Accounts
	f.Codes = []chain.Code{code}
	if err := errors.Join(db.InitAt(id, begin), db.KeepOrigin(&f), db.Compact(), db.Close()); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func(archive.View) error{
		"slot":    func(v archive.View) error { _, err := v.Slot(alice, f.Slots[1000].Slot); return err },
		"account": func(v archive.View) error { _, err := v.Account(alice); return err },
	} {
		s := script{t, open(t, disk)} // with an empty cache
		r, err := s.db.NewReader()
		if err != nil {
			t.Fatal(err)
		}
		v, err := r.At(7)
		if err != nil {
			t.Fatal(err)
		}
		disk.FailReads(true)
		if err := read(v); !errors.Is(err, archivetest.ErrDisk) || errors.Is(err, chain.ErrUnknown) {
			t.Errorf("%s while reads fail: got %v, want the disk's error", name, err)
		}
		disk.FailReads(false)
		if err := read(v); err != nil {
			t.Errorf("%s when reads work again: got %v, want none", name, err)
		}
		r.Release()
		if err := s.db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCheckFindsDamageInASparseStore(t *testing.T) {
	tests := []struct {
		name  string
		key   []byte
		value []byte // nil deletes
		want  string
	}{
		{"fact of no length", join("o", "x"), []byte{}, "not a key of this format"},
		{"slot with a leading zero", join("o", alice, slot1), []byte{0, 1}, "slot value 0001"},
		{"account that is malformed", join("o", bob), []byte{1}, "account 01"},
		{"account without its code", join("c", code.Hash), nil, "is missing"},
		{"code of a later block", join("c", code.Hash), join(8, string(code.Bytes)), "want it of the first block 7"},
		{"wipe that is gone", join("w", alice, ^9), nil, "missing, want the mark that journal 9 lists"},
		{"void slot below the oldest", join("s", alice, slot2, ^7), []byte{1}, "is void since the wipe at 8"},
		{"second wipe below the oldest", join("w", alice, ^7), []byte{}, "want one version at or below the oldest block 8"},
		{"block before the first", join("b", 6), join(genesis.Hash, genesis.Hash, "\x00"), "want that of block 7 here"},
		{"hash of a block before the first", join("h", chain.Hash{5}), join(6), "is block 6, before the first 7"},
		{"first block that is gone", join("b", 7), nil, "want that of block 7 here"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			db := openUnchecked(t, archivetest.NewDisk())
			if err := db.InitAt(id, begin); err != nil {
				t.Fatal(err)
			}
			s := script{t, db}
			s.keep(slotFact(alice, slot1, 3))
			s.keep(accountFact(bob, contract, code))
			s.commit(wipe(alice))
			s.commit(wipeAndWrite(alice, slot1, 1))
			if err := db.Prune(8); err != nil {
				t.Fatal(err)
			}
			if r, err := db.Check(t.Context(), nil); err != nil || r.Origins != 2 {
				t.Fatalf("before the damage: got %d facts, %v, want 2", r.Origins, err)
			}
			if err := db.Plant(tt.key, tt.value); err != nil {
				t.Fatal(err)
			}
			_, err := db.Check(t.Context(), nil)
			if !errors.Is(err, chain.ErrCorrupt) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Check: got %v, want %q", err, tt.want)
			}
		})
	}
	for _, key := range [][]byte{join("o", alice), join("m", "first")} {
		db, _ := checked(t)
		if err := db.Plant(key, []byte{}); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Check(t.Context(), nil); !errors.Is(err, chain.ErrCorrupt) {
			t.Errorf("%q in a store that begins with genesis: got %v, want ErrCorrupt", key[:1], err)
		}
	}
}

func TestSparseFormatIsPinned(t *testing.T) {
	s := newSparse(t)
	s.keep(slotFact(alice, slot1, 3))
	s.keep(slotFact(alice, slot2, 0))
	s.keep(accountFact(alice, contract, code))
	s.keep(accountFact(bob, chain.Account{}))
	digest := digestAfter(digestSeed(1, genesis.Hash), 7, join(begin.Hash, begin.Parent, "\x04head"), []byte{2, 0, 0}, join("\x01", transaction(7)))
	want := map[string][]byte{
		string(join("b", 7)):            join(begin.Hash, begin.Parent, "\x04head"),
		string(join("c", code.Hash)):    join(7, "\x60\x00"),
		string(join("d", 7)):            digest[:],
		string(join("h", begin.Hash)):   join(7),
		string(join("j", 7)):            {0, 0, 2, 0, 0},
		string(join("m", "first")):      join(7),
		string(join("m", "format")):     join(8),
		string(join("m", "head")):       join(7, begin.Hash),
		string(join("m", "identity")):   join(1, genesis.Hash),
		string(join("m", "oldest")):     join(7),
		string(join("o", alice)):        join("\x01\x00", code.Hash),
		string(join("o", alice, slot1)): {3},
		string(join("o", alice, slot2)): {},
		string(join("o", bob)):          {},
		string(join("r", 7)):            join("\x01", transaction(7)),
		string(txKey(transaction(7))):   place(7, 0),
	}
	keys, values, err := s.db.Dump()
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range keys {
		value, ok := want[string(key)]
		if !ok || !bytes.Equal(values[i], value) {
			t.Errorf("key %q: got %x, want %x, %v", key, values[i], value, ok)
		}
		delete(want, string(key))
	}
	for key := range want {
		t.Errorf("key %q: got none", key)
	}
}

// What was asked for, and when, is not content.
func TestDigestDoesNotDependOnFacts(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			h := newSparseHistory(t, seed)
			begin := h.model.Blocks[h.model.First].Block
			begin.Diff, begin.Side = nil, nil
			for range 30 {
				if h.rng.IntN(3) == 0 {
					f := h.world.Facts(h.rng, h.model)
					h.must(h.db.KeepOrigin(f))
					h.model.KeepOrigin(f)
				} else {
					b := h.world.Block(h.rng, h.model)
					b.Side = nil
					h.must(h.db.Commit(b))
					h.model.Commit(b)
				}
			}
			straight := open(t, archivetest.NewDisk())
			h.must(straight.InitAt(h.model.Identity, begin))
			all := new(chain.Facts)
			for a, account := range h.model.Blocks[h.model.First].State.Accounts {
				all.Accounts = append(all.Accounts, chain.AccountFact{Address: a, Account: account})
			}
			all.Codes = h.world.Codes
			h.must(straight.KeepOrigin(all))
			for _, b := range h.model.Blocks[h.model.First+1:] {
				h.must(straight.CommitUnsynced(b.Block))
			}
			got, err := h.db.Check(t.Context(), nil)
			h.must(err)
			want, err := straight.Check(t.Context(), nil)
			h.must(err)
			if got.Digest != want.Digest {
				t.Errorf("digest: got %x, want %x", got.Digest, want.Digest)
			}
		})
	}
}

func TestReadsOfASparseStoreDoNotAllocate(t *testing.T) {
	s := newSparse(t)
	s.keep(slotFact(alice, slot1, 3))
	s.keep(accountFact(chain.Address{8}, chain.Account{}))
	s.commit(write(alice, slot2, 5), wipe(chain.Address{9}))
	v, err := s.reader().At(8)
	if err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func() error{
		"slot of the first block":    func() error { _, err := v.Slot(alice, slot1); return err },
		"slot written since":         func() error { _, err := v.Slot(alice, slot2); return err },
		"wiped slot":                 func() error { _, err := v.Slot(chain.Address{9}, slot1); return err },
		"account of the first block": func() error { _, err := v.Account(chain.Address{8}); return err },
	} {
		got := testing.AllocsPerRun(100, func() {
			if err := read(); err != nil {
				t.Error(err)
			}
		})
		if got != 0 && !underRace {
			t.Errorf("%s: got %v allocations, want 0", name, got)
		}
	}
}
