// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"glimpse/archive"
	"glimpse/bench/workload"
	"glimpse/chain"
	"glimpse/internal/chaingen"
	"glimpse/node"
)

var shape = chaingen.StorageOptions{Contracts: 20, Slots: 400, Blocks: 12, Rewrites: 20, Large: 2}

func generated(t *testing.T) *workload.Chain {
	t.Helper()
	dir := t.TempDir()
	if _, err := workload.Generate(t.Context(), dir, 1, shape); err != nil {
		t.Fatal(err)
	}
	c, err := workload.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAChainIsMadeOnceAndAnewWhenItIsToBeAnother(t *testing.T) {
	dir := t.TempDir()
	made := func(seed uint64) os.FileInfo {
		t.Helper()
		if _, err := workload.Generate(t.Context(), dir, seed, shape); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(workload.Blocks(dir))
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	first, again, other := made(1), made(1), made(2)
	if !first.ModTime().Equal(again.ModTime()) {
		t.Error("the same chain was made twice")
	}
	if first.ModTime().Equal(other.ModTime()) {
		t.Error("another chain was not made")
	}
}

func TestDescriptionCountsWhatTheChainHas(t *testing.T) {
	c := generated(t)
	if c.Transactions == 0 || c.Gas == 0 || c.Versions < shape.Slots || c.Hottest < 2 || c.Hottest > shape.Blocks {
		t.Errorf("got %+v", c.Description)
	}
}

func TestAnUnfinishedChainIsNotOpened(t *testing.T) {
	if _, err := workload.Open(t.TempDir()); err == nil {
		t.Error("got a chain, want an error")
	}
}

func TestGlimpseImportsTheChain(t *testing.T) {
	c := generated(t)
	dir := t.TempDir()
	err := node.Import(t.Context(), node.ImportConfig{
		Store: node.Store{Datadir: dir, CacheMB: 16}, Genesis: workload.Genesis(c.Dir), Files: []string{workload.Blocks(c.Dir)},
		Verify: "root", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	db, err := archive.Open(dir, archive.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r, err := db.NewReader()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if uint64(r.Head().Number) != c.Head() {
		t.Fatalf("got head %d, want %d", r.Head().Number, c.Head())
	}
	slots := 0
	for n := range c.Head() + 1 {
		view, err := r.At(chain.Number(n))
		if err != nil {
			t.Fatal(err)
		}
		c.Slots(func(addr common.Address, slot common.Hash, h workload.History) {
			slots++
			got, err := view.Slot(addr, chain.Slot(slot))
			if err != nil || common.Hash(got) != h.At(n) {
				t.Errorf("block %d, %s slot %s: got %x (%v), want %x", n, addr, slot, got, err, h.At(n))
			}
		})
	}
	if want := shape.Slots * (shape.Blocks + 1); slots != want {
		t.Errorf("compared %d values, want %d", slots, want)
	}
}

type call struct {
	ID     int
	Method string
	Params []json.RawMessage
}

func decode[T any](t *testing.T, text []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v: %.200s", err, text)
	}
	return v
}

// value is what the chain has for an eth_getStorageAt.
func value(t *testing.T, c *workload.Chain, r call) common.Hash {
	t.Helper()
	n, ok := c.Contracts()[decode[common.Address](t, r.Params[0])]
	if !ok {
		t.Fatalf("%s is none of the contracts", r.Params[0])
	}
	block := c.Head()
	if text := decode[string](t, r.Params[2]); strings.HasPrefix(text, "0x") {
		block = common.HexToHash(text).Big().Uint64()
	}
	return c.Value(n, decode[common.Hash](t, r.Params[1]), block)
}

func TestRequestsAskForWhatTheySay(t *testing.T) {
	c := generated(t)
	d := c.NewDrawer(1)
	for range 300 {
		for name, r := range map[string]call{
			"latest":     decode[call](t, d.Present(workload.Latest)),
			"historical": decode[call](t, d.Historical(1)),
		} {
			if value(t, c, r) == (common.Hash{}) {
				t.Fatalf("%s: %s has no value", name, r.Params)
			}
		}
		if r := decode[call](t, d.Absent(workload.Latest)); value(t, c, r) != (common.Hash{}) {
			t.Fatalf("%s has a value", r.Params)
		}
	}
	if batch := decode[[]call](t, d.Batch(100, workload.Latest)); len(batch) != 100 || batch[0].ID == batch[1].ID {
		t.Errorf("got a batch of %d, want 100 with ids of their own", len(batch))
	}
	for _, body := range [][]byte{d.PresentValues(100, workload.Latest), d.AbsentValues(100, workload.Latest)} {
		r, slots := decode[call](t, body), 0
		for _, of := range decode[map[string][]common.Hash](t, r.Params[0]) {
			slots += len(of)
		}
		if r.Method != "eth_getStorageValues" || slots != 100 {
			t.Errorf("got %s of %d slots, want 100", r.Method, slots)
		}
	}
}

func TestTheSameSeedDrawsTheSame(t *testing.T) {
	c := generated(t)
	one, two, other := c.NewDrawer(1), c.NewDrawer(1), c.NewDrawer(2)
	differ := false
	for range 20 {
		a, b := string(one.Historical(1)), string(two.Historical(1))
		if a != b {
			t.Fatalf("got %s and %s of one seed", a, b)
		}
		differ = differ || a != string(other.Historical(1))
	}
	if !differ {
		t.Error("got the same of two seeds")
	}
}
