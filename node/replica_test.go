// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/pending"
	"glimpse/replica"
)

// The journal is what was shown, whatever the store does, and gives back all that it
// holds.
func TestJournalIsWhatWasShown(t *testing.T) {
	db := memoryStore(t)
	refs := emptyChain(t, db, 3)
	var j journal
	if _, err := j.Open(); err == nil {
		t.Error("a journal that was shown nothing opens")
	}
	show := func() bool {
		r, err := db.NewReader()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Release()
		return j.show(r)
	}
	if !show() || show() {
		t.Error("the first one is a change, and the same again is none")
	}
	if err := db.SetTags(&refs[1], &refs[0]); err != nil {
		t.Fatal(err)
	}
	if !show() {
		t.Error("other tags are a change")
	}
	if err := db.Unwind(1, nil); err != nil {
		t.Fatal(err)
	}
	c, err := j.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	if c.Head() != refs[2] || c.Oldest() != 0 {
		t.Errorf("the journal is at %s from %d on, want %s from 0 on", c.Head(), c.Oldest(), refs[2])
	}
	s, err := c.Sealed(2)
	if err != nil || s.Ref != refs[2] || s.Parent != refs[1].Hash || s.Diff == nil || s.Digest == (replica.Digest{}) {
		t.Errorf("block 2 is %+v, %v", s, err)
	}
	if m := c.Marks(); m.Safe == nil || *m.Safe != refs[1] || m.Finalized == nil || *m.Finalized != refs[0] {
		t.Errorf("marks are %+v", m)
	}
	j.close()
}

func TestReplicaDir(t *testing.T) {
	dir := t.TempDir()
	d := replicaDir(filepath.Join(dir, "missing"))
	if path, ok, err := d.newest(); ok || err != nil {
		t.Errorf("a directory that is not there has %q, %v", path, err)
	}
	if next, err := d.next(); err != nil || filepath.Base(next) != "store-000001" {
		t.Errorf("the first store is %q, %v", next, err)
	}
	for _, name := range []string{"store-000001", "store-000009", "store-000010.partial", "store-x", "other"} {
		if err := os.MkdirAll(filepath.Join(string(d), name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if next, err := d.next(); err != nil || filepath.Base(next) != "store-000010" {
		t.Errorf("the next store is %q, %v, want the one that was begun", next, err)
	}
	if path, ok, err := d.newest(); !ok || err != nil || filepath.Base(path) != "store-000009" {
		t.Errorf("the newest store is %q, %v, %v", path, ok, err)
	}
	for name, want := range map[string]bool{"store-000001": false, "store-000009": true, "store-000010.partial": true, "other": true} {
		_, err := os.Stat(filepath.Join(string(d), name))
		if got := !errors.Is(err, fs.ErrNotExist); got != want {
			t.Errorf("%s is there: %v, want %v", name, got, want)
		}
	}
}

// What the store refuses because it is not the writer's is built anew; what the disk
// refuses is not.
func TestReplicaStoreTellsContradictionsFromFailures(t *testing.T) {
	db := memoryStore(t)
	refs := emptyChain(t, db, 2)
	s := &replicaStore{db: db}
	next := replica.Sealed{Ref: chain.Ref{Number: 2, Hash: chain.Hash{9}}, Parent: refs[1].Hash, Diff: new(chain.Diff)}
	code := chain.AccountDiff{Address: chain.Address{1}, Changed: true, Account: chain.Account{Exists: true, CodeHash: chain.Hash{5}}}
	tests := []struct {
		name   string
		change func(*replica.Sealed)
	}{
		{"another digest", func(b *replica.Sealed) { b.Digest = replica.Digest{1} }},
		{"another parent", func(b *replica.Sealed) { b.Parent = chain.Hash{8} }},
		{"a code that is not here", func(b *replica.Sealed) { b.Diff = &chain.Diff{Accounts: []chain.AccountDiff{code}} }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := next
			tt.change(&b)
			if err := s.Commit(&b); !errors.Is(err, replica.ErrMismatch) {
				t.Errorf("Commit = %v, want ErrMismatch", err)
			}
			if at, err := s.Head(); at != refs[1] || err != nil {
				t.Errorf("the head is %s, %v, want %s", at, err, refs[1])
			}
		})
	}
	if err := contradiction(errors.New("no space left")); errors.Is(err, replica.ErrMismatch) {
		t.Error("a full disk is no contradiction")
	}
	if err := contradiction(nil); err != nil {
		t.Errorf("no error became %v", err)
	}
}

// Replicas are told what this node's readers see on its newest block, also of
// flashblocks that were not executed, whose receipts are not known.
func TestOverlaysForReplicas(t *testing.T) {
	latest := chain.Ref{Number: 7, Hash: chain.Hash{7}}
	part := func(n int64, receipts int) pending.Part {
		b := &chain.Preconfirmed{Header: &types.Header{Number: big.NewInt(n)}, Hashes: []chain.Hash{{1}}, Receipts: make([]*types.Receipt, receipts)}
		return pending.Part{Block: b, Layers: []pending.Layer{{Diff: new(chain.Diff)}}}
	}
	tests := []struct {
		name  string
		on    chain.Ref
		parts []pending.Part
		want  int
	}{
		{"nothing", latest, nil, 0},
		{"two blocks", latest, []pending.Part{part(8, 1), part(9, 1)}, 2},
		{"one without receipts on top", latest, []pending.Part{part(8, 1), part(9, 0)}, 2},
		{"one without receipts below", latest, []pending.Part{part(8, 0), part(9, 1)}, 2},
		{"on another block", chain.Ref{Number: 6}, []pending.Part{part(7, 1)}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o, err := pending.NewOverlay(tt.on, tt.parts)
			if err != nil {
				t.Fatal(err)
			}
			told := overlayForReplicas(latest, o)
			if told.Parent != latest || len(told.Blocks) != tt.want {
				t.Errorf("%d blocks on %s are told, want %d on %s", len(told.Blocks), told.Parent, tt.want, latest)
			}
			again, err := overlayOfReplica(told)
			if err != nil {
				t.Fatal(err)
			}
			got, want := chain.AppendDiff(nil, again.Diff()), chain.AppendDiff(nil, o.Diff())
			if tt.want == len(tt.parts) && !bytes.Equal(got, want) {
				t.Errorf("what arrives is %x, want %x", got, want)
			}
		})
	}
}
