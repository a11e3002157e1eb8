// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"glimpse/archive"
	"glimpse/archive/archivetest"
	"glimpse/chain"
)

func join(parts ...any) (key []byte) {
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			key = append(key, p...)
		case chain.Address:
			key = append(key, p[:]...)
		case chain.Hash:
			key = append(key, p[:]...)
		case int:
			key = binary.BigEndian.AppendUint64(key, uint64(p))
		}
	}
	return key
}

// place is where a transaction is, and txKey the key that it is under.
func place(n int, index byte) []byte { return append(join(n), 0, 0, 0, index) }

func txKey(h chain.Hash) []byte { return join("x", string(h[:8])) }

// checked returns a store with one of everything: head 5, oldest 2.
func checked(t *testing.T) (*archive.DB, chain.Ref) {
	t.Helper()
	db := openUnchecked(t, archivetest.NewDisk())
	if err := db.Init(id, genesis); err != nil {
		t.Fatal(err)
	}
	s := script{t, db}
	s.commit(create(alice, true), write(bob, slot1, 9)) // 1
	s.commit(write(alice, slot1, 1))                    // 2
	s.commit(write(alice, slot1, 2))                    // 3
	s.commit(wipe(alice), write(bob, slot1, 0))         // 4
	s.commit(write(alice, slot2, 3))                    // 5
	head := s.reader().Head()
	if err := errors.Join(db.Prune(2), db.SetTags(&head, &head)); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Check(t.Context(), nil); err != nil {
		t.Fatalf("before the damage: %v", err)
	}
	return db, head
}

func TestCheckFindsDamage(t *testing.T) {
	absent := []byte(nil)
	zero := []byte{}
	tests := []struct {
		name  string
		key   []byte
		value []byte // nil deletes
		want  string
	}{
		{"key of no space", join("x"), zero, "not a key of this format"},
		{"key of the wrong length", join("s", alice), zero, "not a key of this format"},
		{"slot with a leading zero", join("s", alice, slot1, ^2), []byte{0, 1}, "slot value 0001"},
		{"slot with another value", join("s", alice, slot1, ^3), []byte{7}, "is 07, want the 02 of its journal"},
		{"slot that is gone", join("s", alice, slot1, ^3), absent, "missing, want the 02 of its journal"},
		{"slot that no journal lists", join("s", alice, slot1, ^5), []byte{7}, "at 5: is not in journal 5"},
		{"slot above the head", join("s", alice, slot1, ^6), []byte{7}, "is above the head 5"},
		{"second slot below the oldest", join("s", alice, slot1, ^1), []byte{7}, "want one version at or below the oldest block 2"},
		{"zero below the oldest", join("s", alice, slot2, ^1), zero, "holds nothing"},
		{"account that is malformed", join("a", alice, ^4), []byte{1}, "account 01"},
		{"account with another value", join("a", alice, ^4), []byte{1, 0}, "is 0100, want the  of its journal"},
		{"account that no journal lists", join("a", bob, ^3), []byte{1, 0}, "at 3: is not in journal 3"},
		{"account that is not there, below the oldest", join("a", bob, ^1), zero, "holds nothing"},
		{"account without its code", join("c", code.Hash), absent, "its code " + code.Hash.Hex() + " is missing"},
		{"code with other bytes", join("c", code.Hash), join(1, "other"), "its bytes have hash"},
		{"code above the head", join("c", code.Hash), join(9, string(code.Bytes)), "is of block 9, above the head 5"},
		{"code without bytes", join("c", code.Hash), join(1), "code entry of 8 bytes"},
		{"wipe that is gone", join("w", alice, ^4), absent, "the mark is missing"},
		{"wipe that no journal lists", join("w", alice, ^3), zero, "at 3: is not in journal 3"},
		{"wipe below the oldest", join("w", alice, ^2), zero, "want it pruned"},
		{"wipe with a value", join("w", alice, ^4), []byte{1}, "want none"},
		{"block that is gone", join("b", 3), absent, "key block 4: want that of block 3 here"},
		{"last block that is gone", join("b", 5), absent, "key block 5: missing"},
		{"block above the head", join("b", 6), join(genesis.Hash, genesis.Hash, "\x00"), "key block 6: is above the head 5"},
		{"block with another parent", join("b", 5), join(chain.Hash{1}, chain.Hash{2}, "\x00"), "has parent"},
		{"block that is cut short", join("b", 5), join(chain.Hash{1}), "block of 32 bytes"},
		{"genesis of another chain", join("b", 0), join(chain.Hash{1}, chain.Hash{}, "\x00"), "want the genesis"},
		{"hash that is gone", join("h", genesis.Hash), absent, "want block 0"},
		{"hash with another number", join("h", genesis.Hash), join(1), "want block 0"},
		{"hash without a number", join("h", chain.Hash{1}), zero, "block number"},
		{"receipts that are gone", join("r", 3), absent, "key receipts 4: want that of block 3 here"},
		{"last receipts that are gone", join("r", 5), absent, "receipts of 5 blocks, want 6"},
		{"receipts above the head", join("r", 6), []byte{0}, "key receipts 6: is above the head 5"},
		{"receipts with a false count", join("r", 5), []byte{9}, "number of transactions"},
		{"receipts with an overlong count", join("r", 5), []byte{0x80, 0}, "number of transactions"},
		{"transaction that is gone", txKey(transaction(5)), absent, "key transactions 0x7700000000000005: missing, want block 5 index 0"},
		{"transaction at another block", txKey(transaction(5)), place(4, 0), "is block 4 index 0, want block 5 index 0"},
		{"transaction at another index", txKey(transaction(5)), place(5, 1), "is block 5 index 1, want block 5 index 0"},
		{"transaction at another place too", txKey(transaction(5)), slices.Concat(place(4, 0), place(5, 0)),
			"is block 4 index 0, block 5 index 0, where " + transaction(4).Hex() + " is"},
		{"transaction past the end of another block too", txKey(transaction(5)), slices.Concat(place(4, 1), place(5, 0)), "and block 4 has 1 transactions"},
		{"transaction at one place twice", txKey(transaction(5)), slices.Concat(place(5, 0), place(5, 0)), "out of order"},
		{"transactions out of order", txKey(transaction(5)), slices.Concat(place(5, 0), place(4, 0)), "out of order"},
		{"transaction that no block lists", txKey(chain.Hash{1}), place(5, 0), "is block 5 index 0, where " + transaction(5).Hex() + " is"},
		{"transaction past the end of its block", txKey(chain.Hash{1}), place(5, 1), "and block 5 has 1 transactions"},
		{"transaction above the head", txKey(chain.Hash{1}), place(6, 0), "is in block 6, above the head 5"},
		{"second transaction above the head", txKey(transaction(5)), slices.Concat(place(5, 0), place(6, 0)), "is in block 6, above the head 5"},
		{"transaction without an index", txKey(chain.Hash{1}), join(5), "places of transactions of 8 bytes"},
		{"transaction without a place", txKey(chain.Hash{1}), zero, "places of transactions of 0 bytes"},
		{"transaction under its whole hash", join("x", transaction(5)), place(5, 0), "not a key of this format"},
		{"journal that is gone", join("j", 4), absent, "key journal 5: want that of block 4 here"},
		{"last journal that is gone", join("j", 5), absent, "3 journals, want 4"},
		{"journal below the oldest", join("j", 1), []byte{0, 0, 2, 0, 0}, "key journal 1: want that of block 2 here"},
		{"journal without a form", join("j", 4), zero, "key journal 4: malformed diff: neither plain nor packed"},
		{"journal of an unknown form", join("j", 4), []byte{2, 0, 2, 0, 0}, "neither plain nor packed"},
		{"journal without a number of codes", join("j", 4), []byte{0}, "number of codes"},
		{"journal with a false number of codes", join("j", 4), []byte{0, 1, 2, 0, 0}, "number of codes"},
		{"journal with an overlong number of codes", join("j", 4), []byte{0, 0x80, 0, 2, 0, 0}, "number of codes"},
		{"journal that is malformed", join("j", 4), []byte{0, 0, 9}, "key journal 4: malformed diff"},
		{"journal that lists nothing", join("j", 5), []byte{0, 0, 2, 0, 0}, "is not in journal 5"},
		{"journal with a code that is not there", join("j", 5), join("\x00\x01", chain.Hash{1}, "\x02\x00\x00"),
			"key journal 5: its code " + chain.Hash{1}.Hex() + " is missing"},
		{"journal with its codes out of order", join("j", 5), join("\x00\x02", code.Hash, chain.Hash{1}, "\x02\x00\x00"), "codes out of order"},
		{"journal with one code twice", join("j", 5), join("\x00\x02", code.Hash, code.Hash, "\x02\x00\x00"), "codes out of order"},
		{"journal with a code too many", join("j", 2), join("\x00\x01", code.Hash, "\x02\x00\x00"), "key digest 2: is "},
		{"journal with bytecode in it", join("j", 2), join("\x00\x00", "\x02\x00\x01", code.Hash, "\x02\x60\x00"), "bytecode in a journal"},
		{"digest that is gone", join("d", 3), absent, "key digest 4: want that of block 3 here"},
		{"first digest that is gone", join("d", 0), absent, "key digest 1: want that of block 0 here"},
		{"last digest that is gone", join("d", 5), absent, "5 digests, want 6"},
		{"digest above the head", join("d", 6), join(chain.Hash{1}), "key digest 6: is above the head 5"},
		{"digest with another value", join("d", 4), join(chain.Hash{1}), "key digest 4: is 0100000000"},
		{"digest before the oldest with another value", join("d", 1), join(chain.Hash{1}), "key digest 2: is "},
		{"digest that is cut short", join("d", 4), join(4), "digest of 8 bytes"},
		{"head with another hash", join("m", "head"), join(5, chain.Hash{1}), "want the last block's hash"},
		{"head that is too low", join("m", "head"), join(4, chain.Hash{1}), "above the head 4"},
		{"head that is too high", join("m", "head"), join(6, chain.Hash{1}), "6 blocks, want 7"},
		{"tag above the head", join("m", "safe"), join(6, chain.Hash{1}), "is block 6, above the head 5"},
		{"tag with another hash", join("m", "finalized"), join(5, chain.Hash{1}), "want the canonical hash"},
		{"unknown name", join("m", "new"), zero, "not a name of this format"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			db, head := checked(t)
			if err := db.Plant(tt.key, tt.value); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(string(tt.key), "mhead") || strings.HasPrefix(string(tt.key), "b") {
				// The tags name blocks too, and would be found first or instead.
				if err := errors.Join(db.Plant([]byte("msafe"), nil), db.Plant([]byte("mfinalized"), nil)); err != nil {
					t.Fatal(err)
				}
			}
			_, err := db.Check(t.Context(), nil)
			if !errors.Is(err, chain.ErrCorrupt) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Check of a store with head %s: got %v, want %q", head, err, tt.want)
			}
		})
	}
}

func TestCheckCountsAndStops(t *testing.T) {
	db, head := checked(t)
	var reached []string
	got, err := db.Check(t.Context(), func(p archive.Progress) { reached = append(reached, p.At) })
	if err != nil {
		t.Fatal(err)
	}
	want := archive.Report{Head: head, Oldest: 2, Slots: 5, Accounts: 2, Wipes: 1, Codes: 1, Blocks: 6, Digests: 6, Journals: 4, Receipts: 6, Transactions: 5, Digest: got.Digest}
	if got != want {
		t.Errorf("report: got %+v, want %+v", got, want)
	}
	if len(reached) == 0 {
		t.Error("progress: got no call, want one")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := db.Check(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Check of a cancelled context: got %v, want Canceled", err)
	}
}

// The bytes on disk are a promise to every store there is: a change here needs
// a new format number and docs/formats.md.
func TestFormatIsPinned(t *testing.T) {
	db := open(t, archivetest.NewDisk())
	if err := db.Init(archive.Identity{ChainID: 7, Genesis: genesis.Hash, Config: []byte("cfg")}, genesis); err != nil {
		t.Fatal(err)
	}
	s := script{t, db}
	first := s.block(func() chain.AccountDiff {
		d := create(alice, true)
		d.Account.Nonce = 300
		d.Account.Balance.SetUint64(0x1234)
		d.Slots = []chain.SlotDiff{{Slot: slot1, Value: chain.Value{30: 2, 31: 3}}}
		return d
	}())
	first.Header, first.Body = []byte("head"), []byte("body")
	first.Transactions = append(first.Transactions, chain.Hash{9})
	first.Side = []archive.SideWrite{{Key: []byte("side"), Value: []byte("data")}}
	if err := db.Commit(first); err != nil {
		t.Fatal(err)
	}
	s.commit(wipe(alice))
	second := s.reader().Head()
	if err := db.SetTags(&second, &first.Ref); err != nil {
		t.Fatal(err)
	}
	g, h1, h2 := genesis.Hash, first.Hash, second.Hash
	account := "\xac\x02" + "\x02\x12\x34" + string(code.Hash[:])
	diff1 := join("\x02\x01", alice, "\x07", account, "\x01\x02", slot1, "\x02\x03", "\x01", code.Hash, "\x02\x60\x00")
	d0 := digestAfter(digestSeed(7, g), 0, join(g, chain.Hash{}, "\x00"), []byte{2, 0, 0}, []byte{0})
	d1 := digestAfter(d0, 1, join(h1, g, "\x04head", "body"), diff1, join("\x02", transaction(1), chain.Hash{9}, "receipts"))
	d2 := digestAfter(d1, 2, join(h2, h1, "\x00"), join("\x02\x01", alice, "\x09", "\x00", "\x00"), join("\x01", transaction(2), "receipts"))
	want := [][2][]byte{
		{join("a", alice, ^2), nil},
		{join("a", alice, ^1), join(account)},
		{join("b", 0), join(g, chain.Hash{}, "\x00")},
		{join("b", 1), join(h1, g, "\x04head", "body")},
		{join("b", 2), join(h2, h1, "\x00")},
		{join("c", code.Hash), join(1, "\x60\x00")},
		{join("d", 0), d0[:]},
		{join("d", 1), d1[:]},
		{join("d", 2), d2[:]},
		{join("h", g), join(0)},
		{join("h", h1), join(1)},
		{join("h", h2), join(2)},
		{join("j", 0), []byte{0, 0, 2, 0, 0}},
		{join("j", 1), join("\x00\x01", code.Hash, "\x02\x01", alice, "\x07", account, "\x01\x02", slot1, "\x02\x03", "\x00")},
		{join("j", 2), join("\x00\x00", "\x02\x01", alice, "\x09", "\x00", "\x00")},
		{join("m", "finalized"), join(1, h1)},
		{join("m", "format"), join(7)},
		{join("m", "head"), join(2, h2)},
		{join("m", "identity"), join(7, g, "cfg")},
		{join("m", "oldest"), join(0)},
		{join("m", "safe"), join(2, h2)},
		{join("r", 0), []byte{0}},
		{join("r", 1), join("\x02", transaction(1), chain.Hash{9}, "receipts")},
		{join("r", 2), join("\x01", transaction(2), "receipts")},
		{join("s", alice, slot1, ^1), []byte{2, 3}},
		{join("t", "side"), []byte("data")},
		{join("w", alice, ^2), nil},
		{txKey(transaction(1)), place(1, 0)},
		{txKey(transaction(2)), place(2, 0)},
		{txKey(chain.Hash{9}), place(1, 1)},
	}
	slices.SortFunc(want, func(a, b [2][]byte) int { return bytes.Compare(a[0], b[0]) })
	keys, values, err := db.Dump()
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range keys { // how a packed one looks is up to whoever packs it
		if key[0] == 'j' && values[i][0] == 1 {
			block := values[slices.IndexFunc(keys, func(k []byte) bool { return k[0] == 'b' && bytes.Equal(k[1:], key[1:]) })]
			journal, err := archive.UnpackJournal(values[i][1:], block)
			if err != nil {
				t.Fatal(err)
			}
			values[i] = append([]byte{0}, journal...)
		}
	}
	for i := range max(len(keys), len(want)) {
		if i >= len(keys) || i >= len(want) || !bytes.Equal(keys[i], want[i][0]) || !bytes.Equal(values[i], want[i][1]) {
			t.Fatalf("entry %d of %d, want %d:\ngot  %x = %x\nwant %x = %x", i, len(keys), len(want),
				keys[min(i, len(keys)-1)], values[min(i, len(keys)-1)], want[min(i, len(want)-1)][0], want[min(i, len(want)-1)][1])
		}
	}
	if got := archive.Comparer().Name; got != "glimpse.v1" {
		t.Errorf("comparer: got %s, want glimpse.v1", got)
	}
}
