// SPDX-License-Identifier: Apache-2.0

//go:build !race

// The race detector allocates memory of its own.

package ethapi_test

import (
	"encoding/binary"
	"runtime"
	"testing"
	"time"

	"glimpse/archive"
	"glimpse/chain"
	"glimpse/ethapi"
	"glimpse/head"
	"glimpse/jsonrpc"
)

// bigSlots are n slots, in order.
func bigSlots(n int) []chain.SlotDiff {
	slots := make([]chain.SlotDiff, n)
	for i := range slots {
		binary.BigEndian.PutUint64(slots[i].Slot[8:], uint64(i)+1)
		slots[i].Value = slots[i].Slot
	}
	return slots
}

// perPage lists a contract and returns how many slots it has, and how much was
// allocated for each page on the average.
func perPage(t *testing.T, api *ethapi.API, tag string) (slots int, bytes uint64) {
	t.Helper()
	method, dst := []byte("glimpse_listStorage"), make([]byte, 0, 1<<20)
	pages := uint64(0)
	var before, end runtime.MemStats
	runtime.ReadMemStats(&before)
	after := "null"
	for after != "" {
		params, _ := jsonrpc.Value(`["` + contract + `","` + tag + `",{"limit":"0x3e8","after":` + after + `}]`).Elements()
		s := api.Begin(t.Context(), nil)
		out, bad := s.Call(t.Context(), dst, method, params)
		s.End()
		if bad != nil {
			t.Fatal(bad)
		}
		after = ""
		_ = jsonrpc.Value(out).Members(func(name []byte, v jsonrpc.Value) *jsonrpc.Error {
			switch {
			case string(name) == "next" && !v.IsNull():
				after = string(v)
			case string(name) == "slots":
				elements, _ := v.Elements()
				for _, ok := elements.Next(); ok; _, ok = elements.Next() {
					slots++
				}
			}
			return nil
		})
		pages++
	}
	runtime.ReadMemStats(&end)
	return slots, (end.TotalAlloc - before.TotalAlloc) / pages
}

// A page of a contract with 200,000 slots costs what one of a small contract does,
// on pending too.
func TestListingABigContractInBoundedMemory(t *testing.T) {
	const most = 2 << 20 // all slots of the big one are six times as much
	for _, count := range []int{2_000, 200_000} {
		slots := bigSlots(count)
		address := chain.Address{19: 0xc0}
		genesis := archive.Block{Ref: chain.Ref{Hash: chain.Hash{1}}, Diff: &chain.Diff{Accounts: []chain.AccountDiff{
			{Address: address, Changed: true, Account: chain.Account{Exists: true, Nonce: 1}, Slots: slots},
		}}}
		db := openArchive(t, archive.Identity{ChainID: 1, Genesis: genesis.Hash}, genesis)
		reader, err := db.NewReader()
		if err != nil {
			t.Fatal(err)
		}
		cleared := &chain.Diff{Accounts: []chain.AccountDiff{{Address: address}}}
		for i := 0; i < count; i += 4 {
			cleared.Accounts[0].Slots = append(cleared.Accounts[0].Slots, chain.SlotDiff{Slot: slots[i].Slot})
		}
		var published head.Publisher
		published.Publish(stored{reader}, diffOverlay{reader.Head(), cleared}, time.Time{})
		t.Cleanup(published.Close)
		api := newArchiveAPI(&published)
		for tag, want := range map[string]int{"latest": count, "pending": count * 3 / 4} {
			got, bytes := perPage(t, api, tag)
			t.Logf("%s of %d slots: %d bytes for a page of 1000", tag, count, bytes)
			if got != want {
				t.Errorf("%s of %d slots lists %d, want %d", tag, count, got, want)
			}
			if bytes > most {
				t.Errorf("%s of %d slots takes %d bytes for a page, want at most %d", tag, count, bytes, uint64(most))
			}
		}
	}
}
