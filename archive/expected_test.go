// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"errors"
	"slices"
	"testing"

	"glimpse/archive"
	"glimpse/archive/archivetest"
	"glimpse/chain"
)

// A block that somebody else has too is taken only where the store is then as
// theirs, and refused before anything is written.
func TestCommitOfABlockWithItsDigest(t *testing.T) {
	genesis := archive.Block{Ref: chain.Ref{Hash: chain.Hash{1}}, Diff: new(chain.Diff)}
	begin := func() *archive.DB {
		db := open(t, archivetest.NewDisk())
		if err := db.Init(archive.Identity{ChainID: 7, Genesis: genesis.Hash}, genesis); err != nil {
			t.Fatal(err)
		}
		return db
	}
	next := archive.Block{
		Ref: chain.Ref{Number: 1, Hash: chain.Hash{2}}, Parent: genesis.Hash, Header: []byte{1}, Diff: new(chain.Diff),
		Transactions: []chain.Hash{{3}, {4}}, Receipts: []byte{5},
	}
	theirs, ours := begin(), begin()
	if err := theirs.Commit(next); err != nil {
		t.Fatal(err)
	}
	_, digest, err := theirs.Digest()
	if err != nil {
		t.Fatal(err)
	}
	_, before, err := ours.Digest()
	if err != nil {
		t.Fatal(err)
	}
	next.Digest = digest
	changed := next
	changed.Receipts = []byte{6}
	if err := ours.Commit(changed); !errors.Is(err, archive.ErrDigest) {
		t.Errorf("commit of another block: %v, want ErrDigest", err)
	}
	if head, now, err := ours.Digest(); head != genesis.Ref || now != before || err != nil {
		t.Errorf("after the refusal the store is at %s with %s, %v, want %s with %s", head, now, err, genesis.Ref, before)
	}
	if err := ours.Commit(next); err != nil {
		t.Fatal(err)
	}
	r, err := ours.NewReader()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if got, err := r.Transactions(1); err != nil || !slices.Equal(got, next.Transactions) {
		t.Errorf("transactions of block 1: %v, %v, want %v", got, err, next.Transactions)
	}
	if _, err := r.Transactions(2); !errors.As(err, new(*chain.Miss)) {
		t.Errorf("transactions after the head: %v, want a miss", err)
	}
}
