// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"glimpse/archive"
	"glimpse/archive/archivetest"
	"glimpse/chain"
)

// named is a block whose body names the slots that it writes, as calls do.
func named(n chain.Number, parent chain.Hash, slots int) archive.Block {
	b := archive.Block{Ref: chain.Ref{Number: n, Hash: numbered(uint64(n))}, Parent: parent,
		Diff: &chain.Diff{Accounts: []chain.AccountDiff{manySlots(alice, slots)}, Codes: []chain.Code{code}}}
	for i, s := range b.Diff.Accounts[0].Slots {
		b.Diff.Accounts[0].Slots[i].Value = numbered(uint64(n)<<32 + uint64(i))
		b.Body = append(append(b.Body, s.Slot[:]...), b.Diff.Accounts[0].Slots[i].Value[:]...)
	}
	return b
}

// plainJournal is written from docs/formats.md and not from the code: a journal as
// it is stored where nothing is packed.
func plainJournal(d *chain.Diff) []byte {
	stored := binary.AppendUvarint([]byte{0}, uint64(len(d.Codes)))
	for _, c := range d.Codes {
		stored = append(stored, c.Hash[:]...)
	}
	return chain.AppendDiff(stored, &chain.Diff{Accounts: d.Accounts})
}

func TestJournalComesBackAsItWent(t *testing.T) {
	random := make([]byte, 300)
	rng := newRand(1)
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	long := bytes.Repeat(random, 1000)
	tests := []struct {
		name           string
		journal, block []byte
		packed         bool
	}{
		{"empty", []byte{2, 0, 0}, random, false},
		{"named in the block", append([]byte{1}, random[50:250]...), random, true},
		{"not named in the block", append([]byte{1}, random...), make([]byte, 100), false},
		{"named at the end of a long block", append([]byte{1}, random...), append(make([]byte, 1<<20), random...), true},
		{"long", append([]byte{1}, long...), random, true},
		{"block too short to help", append([]byte{1}, random...), []byte{1, 2, 3}, false},
		{"no block", append([]byte{1}, random...), nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stored := archive.PackJournal(nil, tt.journal, tt.block)
			if packed := stored[0] == 1; packed != tt.packed {
				t.Fatalf("packed: got %v, want %v", packed, tt.packed)
			}
			if !tt.packed {
				if want := append([]byte{0}, tt.journal...); !bytes.Equal(stored, want) {
					t.Errorf("stored: got %x, want %x", stored, want)
				}
				return
			}
			if len(stored) > len(tt.journal) {
				t.Errorf("stored: got %d bytes, want less than if it were plain, %d", len(stored), 1+len(tt.journal))
			}
			if got, err := archive.UnpackJournal(stored[1:], tt.block); !bytes.Equal(got, tt.journal) || err != nil {
				t.Errorf("unpacked: got %x, %v, want %x", got, err, tt.journal)
			}
		})
	}
}

// What was packed once must be read for ever, whatever packs today.
func TestPackedJournalOfBefore(t *testing.T) {
	block := bytes.Repeat([]byte("0123456789abcdef"), 4)
	packed, err := hex.DecodeString(packedBefore)
	if err != nil {
		t.Fatal(err)
	}
	want := []byte("\x01 a name: 456789abcdef0123, and again 456789abcdef0123")
	if got, err := archive.UnpackJournal(packed, block); !bytes.Equal(got, want) || err != nil {
		t.Errorf("unpacked: got %q, %v, want %q (today packed as %x)", got, err, want, archive.PackJournal(nil, want, block))
	}
}

const packedBefore = "3624012061206e616d653a202e160038303132332c20616e6420616761696e2e1c00106630313233"

func TestDamagedJournalIsRefused(t *testing.T) {
	block := bytes.Repeat([]byte("0123456789abcdef"), 4)
	whole := archive.PackJournal(nil, bytes.Repeat(block, 3), block)[1:]
	tests := []struct {
		name          string
		packed, block []byte
	}{
		{"nothing in it", nil, block},
		{"cut short", whole[:len(whole)-1], block},
		{"more than there may be", []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0}, block},
		{"without its block", whole, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := archive.UnpackJournal(tt.packed, tt.block); !errors.Is(err, chain.ErrDiff) {
				t.Errorf("unpacked: got %d bytes, %v, want ErrDiff", len(got), err)
			}
		})
	}
}

// What is packed is up to the writer, and all that is computed of a store is the
// same whether it was or not.
func TestStoreWithSomeJournalsPlain(t *testing.T) {
	const blocks, plain = 10, 5
	fill := func(db *archive.DB) {
		t.Helper()
		if err := db.Init(id, genesis); err != nil {
			t.Fatal(err)
		}
		parent := genesis.Hash
		for n := chain.Number(1); n <= blocks; n++ {
			b := named(n, parent, 20)
			if err := db.Commit(b); err != nil {
				t.Fatal(err)
			}
			parent = b.Hash
		}
	}
	packed, mixed := open(t, archivetest.NewDisk()), open(t, archivetest.NewDisk())
	fill(packed)
	fill(mixed)
	for n := 1; n <= plain; n++ {
		if err := mixed.Plant(join("j", n), plainJournal(named(chain.Number(n), chain.Hash{}, 20).Diff)); err != nil {
			t.Fatal(err)
		}
	}
	keys, values, err := mixed.Dump()
	if err != nil {
		t.Fatal(err)
	}
	forms := make(map[bool]int)
	for i, key := range keys {
		if key[0] == 'j' {
			forms[values[i][0] == 1]++
		}
	}
	if want := map[bool]int{false: 1 + plain, true: blocks - plain}; !maps.Equal(forms, want) {
		t.Errorf("packed journals: got %v, want %v", forms, want)
	}
	for n := chain.Number(1); n <= blocks; n++ {
		got, err := script{t, mixed}.reader().Diff(n)
		if err != nil {
			t.Fatal(err)
		}
		if want := named(n, chain.Hash{}, 20).Diff; !bytes.Equal(chain.AppendDiff(nil, got), chain.AppendDiff(nil, want)) {
			t.Errorf("diff of %d: got %v, want %v", n, got, want)
		}
	}
	if got, want := content(t, mixed), content(t, packed); got != want {
		t.Errorf("content: got %s, want %s", got, want)
	}
}

// big is bytecode that would show wherever it is.
var big = chain.NewCode(bytes.Repeat([]byte("bytecode"), 1000))

// deploy is a block that brings codes, the first of them to alice.
func (s script) deploy(codes ...chain.Code) {
	s.t.Helper()
	d := create(alice, false)
	d.Account.CodeHash = codes[0].Hash
	b := s.block(d)
	b.Diff.Codes = codes
	b.Diff.Sort()
	if err := s.db.Commit(b); err != nil {
		s.t.Fatal(err)
	}
}

// codesOf expects a block to have brought these codes, whole.
func (s script) codesOf(when string, n chain.Number, want ...chain.Code) {
	s.t.Helper()
	d, err := s.reader().Diff(n)
	if err != nil {
		s.t.Fatalf("%s: %v", when, err)
	}
	sorted := chain.Diff{Codes: slices.Clone(want)}
	sorted.Sort()
	if !slices.EqualFunc(d.Codes, sorted.Codes, func(a, b chain.Code) bool { return a.Hash == b.Hash && bytes.Equal(a.Bytes, b.Bytes) }) {
		s.t.Errorf("%s: codes of block %d: got %d, want %d, or other bytes", when, n, len(d.Codes), len(want))
	}
}

// A journal names bytecode, and whoever reads it gets that from where it is. The
// same code may come more than once, and goes with the first block that brought it.
func TestJournalsNameTheirBytecode(t *testing.T) {
	s := newScript(t)
	s.deploy(big)                           // 1
	s.deploy(code, big)                     // 2
	s.commit(write(alice, slot1, 1))        // 3
	s.deploy(chain.NewCode([]byte{1}), big) // 4
	keys, values, err := s.db.Dump()
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range keys {
		if key[0] == 'j' && len(values[i]) > 200 {
			t.Errorf("journal %x: got %d bytes, want none of the bytecode in it", key[1:], len(values[i]))
		}
	}
	s.codesOf("committed", 1, big)
	s.codesOf("committed", 2, code, big)
	s.codesOf("committed", 3)
	held := s.reader()
	if err := s.db.Unwind(3, nil); err != nil {
		t.Fatal(err)
	}
	s.codesOf("after an unwind", 2, code, big)
	if known, err := s.db.HasCode(big.Hash); !known || err != nil {
		t.Errorf("code that an earlier block brought: got %v, %v, want it", known, err)
	}
	if err := s.db.Prune(2); err != nil {
		t.Fatal(err)
	}
	s.codesOf("after pruning its first block", 2, code, big)
	if d, err := held.Diff(4); err != nil || len(d.Codes) != 2 {
		t.Errorf("from a reader of before: got %v, %v, want two codes", d, err)
	}
}

func TestUnwindTakesBytecodeThatBlocksShared(t *testing.T) {
	s := newScript(t)
	s.commit()
	s.deploy(big, code)
	s.deploy(big)
	if err := s.db.Unwind(1, nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []chain.Code{big, code} {
		if known, err := s.db.HasCode(c.Hash); known || err != nil {
			t.Errorf("code of %d bytes: got %v, %v, want none", len(c.Bytes), known, err)
		}
	}
	s.deploy(big)
	s.codesOf("brought again", 2, big)
}

// A diff without its bytecode would be a false answer (P2).
func TestJournalWithoutItsBytecodeIsCorrupt(t *testing.T) {
	db := openUnchecked(t, archivetest.NewDisk())
	s := script{t, db}
	if err := db.Init(id, genesis); err != nil {
		t.Fatal(err)
	}
	s.deploy(code, big) // alice has code, nobody big
	if err := db.Plant(join("c", big.Hash), nil); err != nil {
		t.Fatal(err)
	}
	want := "key journal 1: its code " + big.Hash.Hex() + " is missing"
	_, errDiff := s.reader().Diff(1)
	_, errContent := s.reader().ContentDigest(t.Context())
	_, errCheck := db.Check(t.Context(), nil)
	for name, err := range map[string]error{"Diff": errDiff, "ContentDigest": errContent, "Check": errCheck} {
		if !errors.Is(err, chain.ErrCorrupt) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
}
