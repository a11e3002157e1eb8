// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"

	"glimpse/archive"
	"glimpse/chain"
)

// benchSlots is how many slots the read benchmarks have beside the hot ones;
// GLIMPSE_BENCH_SLOTS makes it more.
func benchSlots(b *testing.B) int {
	n := 50_000
	if s := os.Getenv("GLIMPSE_BENCH_SLOTS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			b.Fatal(err)
		}
	}
	return n
}

func numbered(n uint64) chain.Hash {
	return crypto.Keccak256Hash(binary.BigEndian.AppendUint64(nil, n))
}

// A filler commits blocks without waiting for the disk.
type filler struct {
	b    *testing.B
	db   *archive.DB
	head chain.Ref
}

func newFiller(b *testing.B) *filler {
	db, err := archive.Open(b.TempDir(), archive.Options{CacheBytes: 256 << 20})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	if err := db.Init(id, genesis); err != nil {
		b.Fatal(err)
	}
	return &filler{b, db, genesis.Ref}
}

func (f *filler) commit(d *chain.Diff) {
	d.Sort()
	next := chain.Ref{Number: f.head.Number + 1, Hash: crypto.Keccak256Hash(f.head.Hash[:])}
	if err := f.db.CommitUnsynced(archive.Block{Ref: next, Parent: f.head.Hash, Diff: d}); err != nil {
		f.b.Fatal(err)
	}
	f.head = next
}

func slotsOf(a chain.Address, from, count int) chain.AccountDiff {
	d := chain.AccountDiff{Address: a}
	for i := range uint64(count) {
		h := numbered(uint64(from) + i)
		d.Slots = append(d.Slots, chain.SlotDiff{Slot: h, Value: chain.Value{30: h[0] | 1, 31: h[1]}})
	}
	return d
}

// view returns the state at block n, until the benchmark ends.
func (f *filler) view(n chain.Number) archive.View {
	r, err := f.db.NewReader()
	if err != nil {
		f.b.Fatal(err)
	}
	f.b.Cleanup(r.Release)
	v, err := r.At(n)
	if err != nil {
		f.b.Fatal(err)
	}
	return v
}

func BenchmarkRead(b *testing.B) {
	f := newFiller(b)
	slots := benchSlots(b)
	f.commit(&chain.Diff{Accounts: []chain.AccountDiff{create(bob, true)}, Codes: []chain.Code{code}})
	const perBlock = 125
	for i := 0; i < slots; i += perBlock {
		f.commit(&chain.Diff{Accounts: []chain.AccountDiff{slotsOf(alice, i, perBlock)}})
	}
	if err := f.db.Compact(); err != nil {
		b.Fatal(err)
	}
	latest, deep := f.view(f.head.Number), f.view(f.head.Number/2)
	blocks := make([]archive.View, 1021) // a prime, so that every slot is read at many blocks
	for i := range blocks {
		blocks[i] = f.view(f.head.Number * chain.Number(i*389%len(blocks)) / chain.Number(len(blocks)))
	}
	keys, never := make([]chain.Slot, 4096), make([]chain.Slot, 4096)
	for i := range keys {
		keys[i] = numbered(uint64(i * 7919 % (slots / 2)))
		never[i] = numbered(uint64(slots + 1000 + i))
	}
	reads := []struct {
		name string
		read func(i int) error
	}{
		{"slot/latest", func(i int) error { _, err := latest.Slot(alice, keys[i%len(keys)]); return err }},
		{"slot/deep", func(i int) error { _, err := deep.Slot(alice, keys[i%len(keys)]); return err }},
		{"slot/random", func(i int) error { _, err := blocks[i%len(blocks)].Slot(alice, keys[i%len(keys)]); return err }},
		{"slot/absent", func(i int) error { _, err := latest.Slot(alice, never[i%len(never)]); return err }},
		{"account", func(int) error { _, err := latest.Account(bob); return err }},
		{"code", func(int) error { _, err := latest.Code(code.Hash); return err }},
	}
	for _, r := range reads {
		b.Run(r.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := r.read(i); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("slot/latest/parallel", func(b *testing.B) {
		b.RunParallel(func(p *testing.PB) {
			for i := 0; p.Next(); i++ {
				if _, err := latest.Slot(alice, keys[i%len(keys)]); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

// Reads at the newest block of a chain that grows: a block of other slots comes
// after as many reads as there are slots.
func BenchmarkReadLive(b *testing.B) {
	f := newFiller(b)
	const slots, perBlock = 50_000, 125
	for i := 0; i < slots; i += perBlock {
		f.commit(&chain.Diff{Accounts: []chain.AccountDiff{slotsOf(alice, i, perBlock)}})
	}
	if err := f.db.Compact(); err != nil {
		b.Fatal(err)
	}
	keys := make([]chain.Slot, 4096)
	for i := range keys {
		keys[i] = numbered(uint64(i * 7919 % slots))
	}
	latest := f.view(f.head.Number)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%len(keys) == 0 {
			b.StopTimer()
			f.commit(&chain.Diff{Accounts: []chain.AccountDiff{slotsOf(bob, i, perBlock)}})
			latest = f.view(f.head.Number)
			b.StartTimer()
		}
		if _, err := latest.Slot(alice, keys[i%len(keys)]); err != nil {
			b.Fatal(err)
		}
	}
}

// The time of a read must not depend on how many versions its slot has. All
// stores have the same number of versions, of the slot that is read or of others.
func BenchmarkHotSlot(b *testing.B) {
	const all, perBlock = 100_000, 125
	for _, versions := range []int{1, 100, 10_000, all} {
		b.Run(fmt.Sprintf("versions=%d", versions), func(b *testing.B) {
			f := newFiller(b)
			for i := range versions {
				f.commit(&chain.Diff{Accounts: []chain.AccountDiff{write(alice, slot1, byte(i)|1)}})
			}
			for i := versions; i < all; i += perBlock {
				f.commit(&chain.Diff{Accounts: []chain.AccountDiff{slotsOf(alice, i, perBlock)}})
			}
			if err := f.db.Compact(); err != nil {
				b.Fatal(err)
			}
			views := make([]archive.View, 64)
			for i := range views {
				views[i] = f.view(1 + chain.Number(i*versions/len(views)))
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := views[i%len(views)].Slot(alice, slot1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCommit(b *testing.B) {
	const changes = 125
	f := newFiller(b)
	for i := 0; b.Loop(); i++ {
		f.commit(&chain.Diff{Accounts: []chain.AccountDiff{slotsOf(alice, i*changes/4, changes)}})
	}
	b.ReportMetric(float64(b.N*changes)/b.Elapsed().Seconds(), "changes/s")
}
