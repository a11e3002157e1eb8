// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"testing"

	"glimpse/archive"
	"glimpse/archive/archivetest"
	"glimpse/chain"
)

// digestSeed and digestAfter are written from docs/formats.md and not from the
// code: replicas of other versions compute the same.
func digestSeed(chainID uint64, genesis chain.Hash) archive.Digest {
	data := binary.BigEndian.AppendUint64([]byte("glimpse digest 1"), chainID)
	return sha256.Sum256(append(data, genesis[:]...))
}

func digestAfter(previous archive.Digest, n chain.Number, values ...[]byte) archive.Digest {
	data := binary.BigEndian.AppendUint64(previous[:], uint64(n))
	for _, v := range values {
		data = append(binary.BigEndian.AppendUint64(data, uint64(len(v))), v...)
	}
	return sha256.Sum256(data)
}

// sameDigests expects two stores to agree in every digest and in content.
func sameDigests(t *testing.T, got, want *archive.DB) {
	t.Helper()
	g, w := script{t, got}.reader(), script{t, want}.reader()
	for n := range w.Head().Number + 1 {
		dg, errGot := g.Digest(n)
		dw, errWant := w.Digest(n)
		if err := errors.Join(errGot, errWant); err != nil || dg != dw {
			t.Errorf("digest of block %d: got %s, want %s, error %v", n, dg, dw, err)
		}
	}
	if cg, cw := content(t, got), content(t, want); cg != cw {
		t.Errorf("content: got %s, want %s", cg, cw)
	}
}

func content(t *testing.T, db *archive.DB) archive.Digest {
	t.Helper()
	d, err := script{t, db}.reader().ContentDigest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func headDigest(t *testing.T, db *archive.DB) archive.Digest {
	t.Helper()
	head, d, err := db.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if same, err := (script{t, db}).reader().Digest(head.Number); same != d || err != nil {
		t.Errorf("the head's digest: got %s, %v from a reader, want %s", same, err, d)
	}
	return d
}

func TestDigestCoversAllThatABlockIsGiven(t *testing.T) {
	committed := func(t *testing.T, change func(*archive.Block)) archive.Digest {
		s := newScript(t)
		s.commit(create(alice, true))
		b := s.block(write(alice, slot1, 1))
		b.Header, b.Body = []byte("header"), []byte("body")
		change(&b)
		if err := s.db.Commit(b); err != nil {
			t.Fatal(err)
		}
		return headDigest(t, s.db)
	}
	plain := committed(t, func(*archive.Block) {})
	tests := []struct {
		name   string
		change func(*archive.Block)
		same   bool
	}{
		{"hash", func(b *archive.Block) { b.Hash[0]++ }, false},
		{"header", func(b *archive.Block) { b.Header = []byte("Header") }, false},
		{"body", func(b *archive.Block) { b.Body = []byte("Body") }, false},
		{"a byte that moves from header to body", func(b *archive.Block) { b.Header, b.Body = []byte("heade"), []byte("rbody") }, false},
		{"receipts", func(b *archive.Block) { b.Receipts = nil }, false},
		{"transactions", func(b *archive.Block) { b.Transactions[0][0]++ }, false},
		{"value of a slot", func(b *archive.Block) { b.Diff.Accounts[0].Slots[0].Value[31]++ }, false},
		{"bytecode that the store has", func(b *archive.Block) { b.Diff.Codes = []chain.Code{code} }, false},
		{"side data, which is not the chain's", func(b *archive.Block) {
			b.Side = []archive.SideWrite{{Key: []byte("k"), Value: []byte("v")}}
		}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := committed(t, tt.change); (got == plain) != tt.same {
				t.Errorf("digest: got %s, plain %s, want the same: %v", got, plain, tt.same)
			}
		})
	}
}

func TestUnwindTakesDigestsBack(t *testing.T) {
	s := newScript(t)
	s.commit(write(alice, slot1, 1))
	at1 := headDigest(t, s.db)
	s.commit(write(alice, slot1, 2))
	if headDigest(t, s.db) == at1 {
		t.Error("digest after another block: got the same")
	}
	old := s.reader()
	if err := s.db.Unwind(1, nil); err != nil {
		t.Fatal(err)
	}
	if got := headDigest(t, s.db); got != at1 {
		t.Errorf("digest after the unwind: got %s, want %s", got, at1)
	}
	var miss *chain.Miss
	if _, err := s.reader().Digest(2); !errors.As(err, &miss) || miss.Reason != chain.Future {
		t.Errorf("digest of a block that was unwound: got %v, want a miss: %s", err, chain.Future)
	}
	if _, err := old.Digest(2); err != nil {
		t.Errorf("digest from a reader of before: got %v, want none", err)
	}
}

func TestPruningKeepsDigests(t *testing.T) {
	s := newScript(t)
	s.commit(write(alice, slot1, 1))
	at1 := headDigest(t, s.db)
	s.commit(write(alice, slot1, 2))
	s.commit(write(alice, slot1, 3))
	if err := s.db.Prune(3); err != nil {
		t.Fatal(err)
	}
	if got, err := s.reader().Digest(1); got != at1 || err != nil {
		t.Errorf("digest of a pruned block: got %s, %v, want %s", got, err, at1)
	}
}

func TestStoreWithoutItsHeadsDigestIsCorrupt(t *testing.T) {
	disk := archivetest.NewDisk()
	db := openUnchecked(t, disk)
	if err := errors.Join(db.Init(id, genesis), db.Plant(join("d", 0), nil), db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Open("db", archive.Options{FS: disk.FS}); !errors.Is(err, chain.ErrCorrupt) {
		t.Errorf("Open: got %v, want ErrCorrupt", err)
	}
}

func TestContentDigestIsOfTheChainAlone(t *testing.T) {
	tests := []struct {
		name   string
		change func(*archive.DB) error
		same   bool
	}{
		{"side data", func(db *archive.DB) error {
			return db.WriteSide([]archive.SideWrite{{Key: []byte("k"), Value: []byte("v")}})
		}, true},
		{"tags", func(db *archive.DB) error { return db.SetTags(nil, nil) }, true},
		{"a block that was unwound", func(db *archive.DB) error { return db.Plant(join("h", chain.Hash{1}), join(3)) }, true},
		{"a slot", func(db *archive.DB) error { return db.Plant(join("s", alice, slot1, ^3), []byte{7}) }, false},
		{"an account", func(db *archive.DB) error { return db.Plant(join("a", alice, ^4), []byte{1, 0}) }, false},
		{"bytecode", func(db *archive.DB) error { return db.Plant(join("c", code.Hash), nil) }, false},
		{"a wipe", func(db *archive.DB) error { return db.Plant(join("w", alice, ^4), nil) }, false},
		{"a journal", func(db *archive.DB) error { return db.Plant(join("j", 5), []byte{0, 0, 2, 0, 0}) }, false},
		{"receipts", func(db *archive.DB) error { return db.Plant(join("r", 5), []byte{0}) }, false},
		{"a transaction", func(db *archive.DB) error { return db.Plant(txKey(transaction(5)), nil) }, false},
		{"a hash", func(db *archive.DB) error { return db.Plant(join("h", genesis.Hash), nil) }, false},
		{"the oldest block", func(db *archive.DB) error { return db.Plant(join("m", "oldest"), join(3)) }, false},
		{"the chain", func(db *archive.DB) error { return db.Plant(join("m", "identity"), join(2, genesis.Hash)) }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			db, _ := checked(t)
			before := content(t, db)
			if err := tt.change(db); err != nil {
				t.Fatal(err)
			}
			if after := content(t, db); (before == after) != tt.same {
				t.Errorf("content: got %s, before %s, want the same: %v", after, before, tt.same)
			}
		})
	}
}

func TestContentDigestStops(t *testing.T) {
	s := newScript(t)
	b := s.block(manySlots(alice, 70_000))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.db.Commit(b); err != nil {
		t.Fatal(err)
	}
	if _, err := s.reader().ContentDigest(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("ContentDigest of a cancelled context: got %v, want Canceled", err)
	}
}
