// SPDX-License-Identifier: Apache-2.0

package node

import (
	"log/slog"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/archive"
	"glimpse/chain"
	"glimpse/flashblock"
	"glimpse/head"
	"glimpse/pending"
)

// emptyChain fills a store with blocks without transactions and returns them.
func emptyChain(t *testing.T, db *archive.DB, blocks int) (refs []chain.Ref) {
	t.Helper()
	for n := range blocks {
		extendChain(t, db, &refs, byte(n))
	}
	return refs
}

// extendChain adds a block to the last of refs, whose hash depends on salt.
func extendChain(t *testing.T, db *archive.DB, refs *[]chain.Ref, salt byte) {
	t.Helper()
	header := &types.Header{Number: big.NewInt(int64(len(*refs))), Difficulty: new(big.Int), Extra: []byte{salt}}
	if n := len(*refs); n > 0 {
		header.ParentHash = (*refs)[n-1].Hash
	}
	data, err := rlp.EncodeToBytes(header)
	if err != nil {
		t.Fatal(err)
	}
	b := archive.Block{
		Ref: chain.Ref{Number: chain.Number(len(*refs)), Hash: header.Hash()}, Parent: header.ParentHash, Header: data, Diff: new(chain.Diff),
	}
	if len(*refs) == 0 {
		err = db.Init(archive.Identity{ChainID: 7, Genesis: b.Hash}, b)
	} else {
		err = db.Commit(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	*refs = append(*refs, b.Ref)
}

func memoryStore(t *testing.T) *archive.DB {
	t.Helper()
	db, err := archive.Open("", archive.Options{})
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

// A flashblock that comes while the store is in the middle of a reorganisation shows
// readers nothing of it (P6).
func TestFlashblocksShowNoHalfOfAReorganisation(t *testing.T) {
	db := memoryStore(t)
	refs := emptyChain(t, db, 4)
	var published head.Publisher
	t.Cleanup(published.Close)
	s, err := newService(new(Service), db, &published, expectations{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPreconfirmations(db, asItIs{}, listed{}, pending.Options{}, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	latest := func() chain.Ref {
		l := published.Acquire()
		defer l.Release()
		return l.Latest()
	}
	stale := &flashblock.Message{Number: 1, Base: new(flashblock.Base)}
	before := refs[3]
	if err := db.Unwind(1, nil); err != nil {
		t.Fatal(err)
	}
	p.flashblock(stale)
	if got := latest(); got != before {
		t.Errorf("with the old branch taken back readers see %s, want %s", got, before)
	}
	refs = refs[:2]
	for salt := range byte(3) {
		extendChain(t, db, &refs, 100+salt)
		p.flashblock(stale)
		if got := latest(); got != before {
			t.Errorf("with %d blocks of the new branch readers see %s, want %s", salt+1, got, before)
		}
	}
	header := &types.Header{Number: big.NewInt(4), ParentHash: refs[3].Hash, Difficulty: new(big.Int)}
	if err := p.seal(&pending.SealedBlock{Hash: refs[4].Hash, Header: header}, 2); err != nil {
		t.Fatal(err)
	}
	if got := latest(); got != refs[4] {
		t.Errorf("after the reorganisation readers see %s, want %s", got, refs[4])
	}
}
