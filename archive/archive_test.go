// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"

	"glimpse/archive"
	"glimpse/archive/archivetest"
	"glimpse/chain"
)

// small keeps the memory of a test's store low, and its memtables so small that
// flushes happen.
var small = archive.Options{CacheBytes: 4 << 20}

// open opens a store that is checked and closed at the end of the test.
func open(t testing.TB, disk *archivetest.Disk) *archive.DB {
	t.Helper()
	o := small
	o.FS = disk.FS
	db, err := archive.Open("db", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { checkAndClose(t, db) })
	return db
}

func checkAndClose(t testing.TB, db *archive.DB) {
	t.Helper()
	_, err := db.Check(context.Background(), nil) // the test's own context has ended
	if err != nil && !errors.Is(err, archive.ErrClosed) && !errors.Is(err, archive.ErrEmpty) {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// A script commits hand-written blocks on top of an empty genesis.
type script struct {
	t  testing.TB
	db *archive.DB
}

var (
	genesis = archive.Block{Ref: chain.Ref{Hash: crypto.Keccak256Hash([]byte("genesis"))}, Diff: new(chain.Diff)}
	id      = archive.Identity{ChainID: 1, Genesis: genesis.Hash}
)

func newScript(t testing.TB) script {
	t.Helper()
	db := open(t, archivetest.NewDisk())
	if err := db.Init(id, genesis); err != nil {
		t.Fatal(err)
	}
	return script{t, db}
}

// block returns the block that follows the head with these changes.
func (s script) block(accounts ...chain.AccountDiff) archive.Block {
	s.t.Helper()
	r := s.reader()
	head := r.Head()
	b := archive.Block{
		Ref:    chain.Ref{Number: head.Number + 1, Hash: crypto.Keccak256Hash(head.Hash[:])},
		Parent: head.Hash,
		Diff:   &chain.Diff{Accounts: accounts},
	}
	for _, a := range accounts {
		if a.Account.CodeHash == code.Hash {
			b.Diff.Codes = []chain.Code{code}
		}
	}
	b.Diff.Sort()
	b.Transactions, b.Receipts = []chain.Hash{transaction(b.Number)}, []byte("receipts")
	return b
}

// transaction is the hash of the one transaction in block n of a script.
func transaction(n chain.Number) chain.Hash { return chain.Hash{0: 0x77, 7: byte(n), 31: byte(n)} }

func (s script) commit(accounts ...chain.AccountDiff) {
	s.t.Helper()
	if err := s.db.Commit(s.block(accounts...)); err != nil {
		s.t.Fatal(err)
	}
}

// reader returns the store as it is, until the end of the test.
func (s script) reader() *archive.Reader {
	s.t.Helper()
	r, err := s.db.NewReader()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(r.Release)
	return r
}

// slots expects a slot to have these values, at the blocks from first on.
func (s script) slots(a chain.Address, slot chain.Slot, first chain.Number, want ...byte) {
	s.t.Helper()
	r := s.reader()
	for i, w := range want {
		n := first + chain.Number(i)
		v, err := r.At(n)
		if err != nil {
			s.t.Fatal(err)
		}
		got, err := v.Slot(a, slot)
		if err != nil {
			s.t.Fatal(err)
		}
		if got != (chain.Value{31: w}) {
			s.t.Errorf("slot at %d: got %s, want %d", n, got, w)
		}
	}
}

var (
	alice = chain.Address{19: 1}
	bob   = chain.Address{19: 2}
	slot1 = chain.Slot{31: 1}
	slot2 = chain.Slot{31: 2}
	code  = chain.NewCode([]byte{0x60, 0x00})
)

func write(a chain.Address, s chain.Slot, v byte) chain.AccountDiff {
	return chain.AccountDiff{Address: a, Slots: []chain.SlotDiff{{Slot: s, Value: chain.Value{31: v}}}}
}

func create(a chain.Address, withCode bool) chain.AccountDiff {
	d := chain.AccountDiff{Address: a, Changed: true, Account: chain.Account{Exists: true, Nonce: 1}}
	if withCode {
		d.Account.CodeHash = code.Hash
	}
	return d
}

func wipe(a chain.Address) chain.AccountDiff {
	return chain.AccountDiff{Address: a, Changed: true, Wiped: true}
}

func wipeAndWrite(a chain.Address, s chain.Slot, v byte) chain.AccountDiff {
	d := write(a, s, v)
	d.Changed, d.Wiped, d.Account = true, true, chain.Account{Exists: true, Nonce: 1}
	return d
}
