// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"maps"
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
		{"empty", []byte{1, 0, 0}, random, false},
		{"named in the block", append([]byte{1}, random[50:250]...), random, true},
		{"not named in the block", append([]byte{1}, random...), make([]byte, 100), false},
		{"named at the end of a long block", append([]byte{1}, random...), append(make([]byte, 1<<20), random...), true},
		{"long", append([]byte{1}, long...), random, true},
		{"block too short to help", append([]byte{1}, random...), []byte{1, 2, 3}, false},
		{"no block", append([]byte{1}, random...), nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stored := archive.AppendJournal(nil, tt.journal, tt.block)
			if packed := stored[0] == 0xff; packed != tt.packed {
				t.Fatalf("packed: got %v, want %v", packed, tt.packed)
			}
			if !tt.packed {
				if !bytes.Equal(stored, tt.journal) {
					t.Errorf("stored: got %x, want the journal %x", stored, tt.journal)
				}
				return
			}
			if len(stored) >= len(tt.journal) {
				t.Errorf("stored: got %d bytes, want less than the %d of the journal", len(stored), len(tt.journal))
			}
			if got, err := archive.UnpackJournal(stored, tt.block); !bytes.Equal(got, tt.journal) || err != nil {
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
		t.Errorf("unpacked: got %q, %v, want %q (today packed as %x)", got, err, want, archive.AppendJournal(nil, want, block))
	}
}

const packedBefore = "ff3624012061206e616d653a202e160038303132332c20616e6420616761696e2e1c00106630313233"

func TestDamagedJournalIsRefused(t *testing.T) {
	block := bytes.Repeat([]byte("0123456789abcdef"), 4)
	whole := archive.AppendJournal(nil, bytes.Repeat(block, 3), block)
	tests := []struct {
		name          string
		stored, block []byte
	}{
		{"nothing in it", whole[:1], block},
		{"cut short", whole[:len(whole)-1], block},
		{"more than there may be", []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0x0f, 0}, block},
		{"without its block", whole, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := archive.UnpackJournal(tt.stored, tt.block); !errors.Is(err, chain.ErrDiff) {
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
		if err := mixed.Plant(join("j", n), chain.AppendDiff(nil, named(chain.Number(n), chain.Hash{}, 20).Diff)); err != nil {
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
			forms[values[i][0] == 0xff]++
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
