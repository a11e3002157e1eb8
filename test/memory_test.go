// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"glimpse/archive"
	"glimpse/chain"
	"glimpse/importer"
)

const (
	memoryCacheMB    = 256
	memoryOverheadMB = 150
	slotsPerBlock    = 1000
)

// TestServeMemory reads at random from a store of many slots and looks at the
// memory that the server took: never more than its cache and a fixed overhead.
// GLIMPSE_MEMORY_SLOTS is how many slots; make memory takes three million.
func TestServeMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("resident memory is read from /proc")
	}
	slots := 100_000
	if text := os.Getenv("GLIMPSE_MEMORY_SLOTS"); text != "" {
		var err error
		if slots, err = strconv.Atoi(text); err != nil {
			t.Fatalf("GLIMPSE_MEMORY_SLOTS: %v", err)
		}
	}
	dir := t.TempDir()
	head := fillStore(t, dir, slots)
	s := serve(t, "serve", "--datadir", dir, "--cache", strconv.Itoa(memoryCacheMB), "--http.port", "0")
	before := residentMB(t, s.cmd.Process.Pid, "VmRSS")

	const readers, batches, batchSize = 8, 250, 100
	var wg sync.WaitGroup
	for seed := range readers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(seed), 0))
			for range batches {
				readAtRandom(t, r, s.url(), slots, head, batchSize)
			}
		})
	}
	wg.Wait()
	peak := residentMB(t, s.cmd.Process.Pid, "VmHWM")
	t.Logf("%d slots in %d blocks, cache %d MB: %d MB at the start, %d MB at most during %d reads",
		slots, head, memoryCacheMB, before, peak, readers*batches*batchSize)
	if most := memoryCacheMB + memoryOverheadMB; peak > most {
		t.Errorf("resident memory of %d MB, want at most %d", peak, most)
	}
}

// slotOf spreads slots over a thousand contracts, each found by its index.
func slotOf(i int) (a chain.Address, s chain.Slot) {
	binary.BigEndian.PutUint32(a[:], uint32(i%1000))
	return a, crypto.Keccak256Hash(binary.BigEndian.AppendUint64(nil, uint64(i)))
}

// fillStore makes a store with that many slots, a thousand in each block.
func fillStore(t *testing.T, dir string, slots int) (head int) {
	t.Helper()
	db, err := archive.Open(dir, archive.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	parent := new(types.Header)
	commit := func(n int, diff *chain.Diff, store func(archive.Block) error) {
		header := &types.Header{Number: big.NewInt(int64(n)), Difficulty: new(big.Int), ParentHash: parent.Hash()}
		b, err := importer.NewBlock(types.NewBlockWithHeader(header), nil, diff)
		if err != nil {
			t.Fatal(err)
		}
		diff.Sort()
		if err := store(archive.Block{Ref: b.Ref, Parent: b.Parent, Header: b.Header, Body: b.Body, Receipts: b.Receipts, Diff: diff}); err != nil {
			t.Fatal(err)
		}
		parent = header
	}
	commit(0, new(chain.Diff), func(b archive.Block) error {
		return db.Init(archive.Identity{ChainID: 1, Genesis: b.Hash, Config: []byte(`{"chainId":1}`)}, b)
	})
	for i := 0; i < slots; i += slotsPerBlock {
		diff := new(chain.Diff)
		for k := i; k < min(i+slotsPerBlock, slots); k++ {
			a, slot := slotOf(k)
			diff.Accounts = append(diff.Accounts, chain.AccountDiff{
				Address: a, Changed: true, Account: chain.Account{Exists: true, Nonce: uint64(k)},
				Slots: []chain.SlotDiff{{Slot: slot, Value: slot}},
			})
		}
		head++
		commit(head, diff, db.CommitUnsynced)
	}
	return head
}

// readAtRandom sends one batch of reads, of which most are of slots that exist
// at the block asked for, and checks every answer.
func readAtRandom(t *testing.T, r *rand.Rand, url string, slots, head, size int) {
	t.Helper()
	calls, want := make([]rpcCall, size), make([]string, size)
	for i := range calls {
		k, n := r.IntN(slots), r.IntN(head+1)
		a, slot := slotOf(k)
		if want[i] = `"` + slot.Hex() + `"`; n < k/slotsPerBlock+1 {
			want[i] = `"` + chain.Value{}.Hex() + `"`
		}
		calls[i] = rpcCall{"2.0", i, "eth_getStorageAt", []any{a, slot, fmt.Sprintf("%#x", n)}}
	}
	body, err := json.Marshal(calls)
	if err != nil {
		t.Error(err)
		return
	}
	answers, err := ask(t, url, body, calls)
	if err != nil {
		t.Error(err)
		return
	}
	for i, a := range answers {
		if string(a.Result) != want[i] {
			t.Errorf("%v: got %s, want %s", calls[i].Params, a.Result, want[i])
		}
	}
}

// residentMB reads a line of the process's status, in MiB.
func residentMB(t *testing.T, pid int, line string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(line + `:\s+(\d+) kB`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no %s in the status of the process", line)
	}
	kb, err := strconv.Atoi(string(bytes.TrimSpace(m[1])))
	if err != nil {
		t.Fatal(err)
	}
	return kb / 1024
}
