// SPDX-License-Identifier: Apache-2.0

package ethapi_test

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"glimpse/archive/archivetest"
	"glimpse/chain"
)

type slotJSON struct{ Slot, Value chain.Hash }

type listingJSON struct {
	Block hexutil.Uint64
	Hash  *chain.Hash
	Level string
	Index *hexutil.Uint64
	Slots []slotJSON
	Next  *chain.Hash
}

type changeJSON struct {
	Block    hexutil.Uint64
	Level    string
	Index    *hexutil.Uint64
	Value    *chain.Hash
	CodeHash *chain.Hash
}

type changesJSON struct {
	Changes []changeJSON
	Next    *hexutil.Uint64
}

// list reads a whole listing in pages of random size.
func (w *world) list(a chain.Address, block string) (all []chain.SlotDiff) {
	w.t.Helper()
	after := "null"
	for {
		limit := 1 + w.rng.IntN(4)
		var got listingJSON
		w.must(&got, "glimpse_listStorage", `["%s",%s,{"limit":"0x%x","after":%s}]`, a, block, limit, after)
		for _, s := range got.Slots {
			all = append(all, chain.SlotDiff{Slot: s.Slot, Value: s.Value})
		}
		if got.Next == nil {
			return all
		}
		if len(got.Slots) != limit {
			w.t.Fatalf("a page of %d with more to come, want %d", len(got.Slots), limit)
		}
		after = `"` + got.Next.Hex() + `"`
	}
}

// history reads a whole history in pages of random size. Params are those before
// the range.
func (w *world) history(method, params, from, to string) (all []changeJSON) {
	w.t.Helper()
	after := "null"
	for {
		limit := 1 + w.rng.IntN(3)
		var got changesJSON
		w.must(&got, method, `[%s,"%s","%s",{"limit":"0x%x","after":%s}]`, params, from, to, limit, after)
		all = append(all, got.Changes...)
		if got.Next == nil {
			return all
		}
		if len(got.Changes) != limit {
			w.t.Fatalf("a page of %d with more to come, want %d", len(got.Changes), limit)
		}
		after = `"` + got.Next.String() + `"`
	}
}

func quoted(n chain.Number) string { return fmt.Sprintf(`"0x%x"`, uint64(n)) }

func sameSlots(a, b []chain.SlotDiff) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}

// wantSlots is a history as the model has it.
func (w *world) wantSlots(key archivetest.SlotKey, from, to chain.Number) (all []changeJSON) {
	for _, v := range w.model.SlotHistory(key, from, to) {
		all = append(all, changeJSON{Block: hexutil.Uint64(v.Block), Level: "sealed", Value: &v.Value})
	}
	return all
}

func (w *world) wantCodes(a chain.Address, from, to chain.Number) (all []changeJSON) {
	for _, v := range w.model.CodeHistory(a, from, to) {
		c := changeJSON{Block: hexutil.Uint64(v.Block), Level: "sealed"}
		if v.Hash != (chain.Hash{}) {
			c.CodeHash = &v.Hash
		}
		all = append(all, c)
	}
	return all
}

// compare asks for everything at every block that has state, and for the reason
// at every other.
func (w *world) compare() {
	w.t.Helper()
	latest := w.model.Head().Number
	for n := chain.Number(0); n <= latest; n++ {
		if n < w.model.Oldest {
			w.pruned(n)
			continue
		}
		to := n + chain.Number(w.rng.IntN(int(latest-n)+1))
		for _, a := range w.Addresses {
			if got, want := w.list(a, quoted(n)), w.model.Blocks[n].State.SlotsOf(a); !sameSlots(got, want) {
				w.t.Fatalf("listing of %s at %d\n got %v\nwant %v", a, n, got, want)
			}
			for _, end := range []chain.Number{to, latest} {
				w.compareHistories(a, n, end)
			}
		}
	}
}

func (w *world) compareHistories(a chain.Address, from, to chain.Number) {
	w.t.Helper()
	first, last := fmt.Sprintf("0x%x", uint64(from)), fmt.Sprintf("0x%x", uint64(to))
	for _, k := range w.Slots {
		got := w.history("glimpse_getStorageHistory", fmt.Sprintf(`"%s","%s"`, a, k), first, last)
		if want := w.wantSlots(archivetest.SlotKey{Address: a, Slot: k}, from, to); !reflect.DeepEqual(got, want) {
			w.t.Fatalf("history of %s of %s from %d to %d\n got %v\nwant %v", k, a, from, to, got, want)
		}
	}
	got := w.history("glimpse_getCodeHistory", `"`+a.Hex()+`"`, first, last)
	if want := w.wantCodes(a, from, to); !reflect.DeepEqual(got, want) {
		w.t.Fatalf("code history of %s from %d to %d\n got %v\nwant %v", a, from, to, got, want)
	}
}

// pruned asks for what is not there any more (P8).
func (w *world) pruned(n chain.Number) {
	w.t.Helper()
	a, block := w.Addresses[0], quoted(n)
	data := fmt.Sprintf(`{"reason":"pruned","oldest":%s,"latest":%s}`, quoted(w.model.Oldest), quoted(w.model.Head().Number))
	for method, params := range map[string]string{
		"glimpse_listStorage":       fmt.Sprintf(`["%s",%s]`, a, block),
		"glimpse_getStorageHistory": fmt.Sprintf(`["%s","0x0",%s,"latest"]`, a, block),
		"glimpse_getCodeHistory":    fmt.Sprintf(`["%s",%s,"latest"]`, a, block),
		"glimpse_getStateDiff":      `[` + block + `]`,
		"eth_getStorageAt":          fmt.Sprintf(`["%s","0x0",%s]`, a, block),
	} {
		var got any
		if bad := ask(w.t, w.api, &got, method, "%s", params); bad == nil || bad.Code != 4444 || string(bad.Data) != data {
			w.t.Errorf("%s at %d gives %v, %+v, want 4444 with %s", method, n, got, bad, data)
		}
	}
}

func TestListingsAndHistoriesAreTheModels(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			w := newWorld(t, seed, 16)
			w.compare()
			w.replay()
			oldest := chain.Number(1 + w.rng.IntN(15))
			if err := w.db.Prune(oldest); err != nil {
				t.Fatal(err)
			}
			w.model.Prune(oldest)
			w.publish(nil)
			w.compare()
			w.capabilities()
		})
	}
}

// capabilities compares what a pruned node says of itself with what it does.
func (w *world) capabilities() {
	w.t.Helper()
	type part struct {
		Disabled    bool
		OldestBlock hexutil.Uint64
	}
	var got struct {
		Head struct {
			Number hexutil.Uint64
			Hash   chain.Hash
		}
		State, Blocks, Tx, Logs, Receipts, Stateproofs part
	}
	w.must(&got, "eth_capabilities", `[]`)
	if uint64(got.Head.Number) != uint64(w.model.Head().Number) || uint64(got.State.OldestBlock) != uint64(w.model.Oldest) {
		w.t.Errorf("capabilities are %+v, want state of %d to %v", got, w.model.Oldest, w.model.Head())
	}
	if got.Blocks != (part{}) || got.Tx != (part{}) || got.Logs != (part{}) || got.Receipts != (part{}) || !got.Stateproofs.Disabled {
		w.t.Errorf("capabilities are %+v, want all blocks, transactions, logs and receipts", got)
	}
	lease := w.published.Acquire()
	defer lease.Release()
	for _, b := range w.model.Blocks {
		header, err := lease.Header(b.Number)
		body, err2 := lease.Body(b.Number)
		receipts, err3 := lease.Receipts(b.Number)
		if err != nil || err2 != nil || err3 != nil ||
			string(header) != string(b.Header) || string(body) != string(b.Body) || string(receipts) != string(b.Receipts) {
			w.t.Errorf("block %d is not whole: %v, %v, %v", b.Number, err, err2, err3)
		}
		for i, tx := range b.Transactions {
			if n, index, ok, err := lease.Transaction(tx); err != nil || !ok || n != b.Number || index != i {
				w.t.Errorf("transaction %s is %d of %d, %v, %v", tx, index, n, ok, err)
			}
		}
	}
}

type diffJSON struct {
	Block      hexutil.Uint64
	Hash       *chain.Hash
	Level      string
	Index      *hexutil.Uint64
	ParentHash chain.Hash
	Accounts   []map[string]any
	Codes      []struct {
		Hash chain.Hash
		Code hexutil.Bytes
	}
}

// replay builds the storage and the codes of each block from the diffs.
func (w *world) replay() {
	w.t.Helper()
	slots, codes := make(map[archivetest.SlotKey]chain.Value), make(map[chain.Address]any)
	parent := chain.Hash{}
	for _, b := range w.model.Blocks {
		var d diffJSON
		w.must(&d, "glimpse_getStateDiff", `[%s]`, quoted(b.Number))
		if d.ParentHash != parent || d.Hash == nil || *d.Hash != b.Hash || d.Index != nil || len(d.Codes) != len(b.Diff.Codes) {
			w.t.Fatalf("diff of %v is %+v, want it on %s", b.Ref, d, parent)
		}
		parent = *d.Hash
		for _, a := range d.Accounts {
			replayAccount(a, slots, codes)
		}
		if !maps.Equal(slots, b.State.Slots) {
			w.t.Fatalf("at %d the diffs give %v, want %v", b.Number, slots, b.State.Slots)
		}
		for _, a := range w.Addresses {
			want := any(nil)
			if h := b.State.Accounts[a].CodeHash; h != (chain.Hash{}) {
				want = h.Hex()
			}
			if codes[a] != want {
				w.t.Fatalf("at %d the code of %s is %v, want %v", b.Number, a, codes[a], want)
			}
		}
	}
}

func replayAccount(a map[string]any, slots map[archivetest.SlotKey]chain.Value, codes map[chain.Address]any) {
	address := chain.Address(hexutil.MustDecode(a["address"].(string)))
	if account, changed := a["account"]; changed {
		codes[address] = nil
		if fields, exists := account.(map[string]any); exists {
			codes[address] = fields["codeHash"]
		}
	}
	if a["wiped"].(bool) {
		maps.DeleteFunc(slots, func(k archivetest.SlotKey, _ chain.Value) bool { return k.Address == address })
	}
	for _, s := range a["slots"].([]any) {
		entry := s.(map[string]any)
		key := archivetest.SlotKey{Address: address, Slot: chain.Slot(hexutil.MustDecode(entry["slot"].(string)))}
		if slots[key] = chain.Value(hexutil.MustDecode(entry["value"].(string))); slots[key] == (chain.Value{}) {
			delete(slots, key)
		}
	}
}

// On pending, listing, histories and diff are those of the block that is promised,
// as if it were sealed.
func TestPendingIsTheModelOneBlockOn(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			w := newWorld(t, seed, 5)
			latest := w.model.Head()
			next := w.Block(w.rng, w.model)
			w.publish(next.Diff)
			sealed := w.model.Clone()
			w.model.Commit(next)
			state := w.model.Blocks[next.Number].State
			for _, a := range w.Addresses {
				if got, want := w.list(a, `"pending"`), state.SlotsOf(a); !sameSlots(got, want) {
					t.Errorf("listing of %s on pending\n got %v\nwant %v", a, got, want)
				}
				if got, want := w.list(a, `"latest"`), sealed.Blocks[latest.Number].State.SlotsOf(a); !sameSlots(got, want) {
					t.Errorf("listing of %s on latest\n got %v\nwant %v", a, got, want)
				}
				for _, k := range w.Slots {
					want := markedPromised(w.wantSlots(archivetest.SlotKey{Address: a, Slot: k}, 0, next.Number), next.Number)
					if got := w.history("glimpse_getStorageHistory", fmt.Sprintf(`"%s","%s"`, a, k), "0x0", "pending"); !reflect.DeepEqual(got, want) {
						t.Errorf("history of %s of %s\n got %v\nwant %v", k, a, got, want)
					}
				}
				want := markedPromised(w.wantCodes(a, 0, next.Number), next.Number)
				if got := w.history("glimpse_getCodeHistory", `"`+a.Hex()+`"`, "earliest", "pending"); !reflect.DeepEqual(got, want) {
					t.Errorf("code history of %s\n got %v\nwant %v", a, got, want)
				}
			}
			var d diffJSON
			w.must(&d, "glimpse_getStateDiff", `["pending"]`)
			if d.Hash != nil || d.Index == nil || *d.Index != 2 || uint64(d.Block) != uint64(next.Number) || d.ParentHash != latest.Hash || len(d.Accounts) != len(next.Diff.Accounts) {
				t.Errorf("diff of pending is %+v", d)
			}
		})
	}
}

// markedPromised marks the entry of a block as pre-confirmed.
func markedPromised(all []changeJSON, n chain.Number) []changeJSON {
	if last := &all[len(all)-1]; uint64(last.Block) == uint64(n) {
		index := hexutil.Uint64(2)
		last.Level, last.Index = "preconfirmed", &index
	}
	return all
}

// A listing by tag says which block it was, and that block can be asked for the
// rest: by number, or by hash, which a reorg would make an error.
func TestListingNamesItsBlock(t *testing.T) {
	w := newWorld(t, 1, 6)
	latest := w.model.Head()
	for _, tag := range []string{"latest", "earliest"} {
		var got, again listingJSON
		w.must(&got, "glimpse_listStorage", `["%s","%s",{"limit":"0x1"}]`, w.Addresses[0], tag)
		w.must(&again, "glimpse_listStorage", `["%s",{"blockHash":"%s"},{"limit":"0x1"}]`, w.Addresses[0], got.Hash)
		if !reflect.DeepEqual(got, again) {
			t.Errorf("by tag %+v, by hash %+v", got, again)
		}
		if tag == "latest" && (uint64(got.Block) != uint64(latest.Number) || *got.Hash != latest.Hash) {
			t.Errorf("latest is %d %s, want %v", got.Block, got.Hash, latest)
		}
	}
	if !strings.HasPrefix(stampOf(w), fmt.Sprintf("%d:%s;", latest.Number, latest.Hash)) {
		t.Errorf("the stamp is %s, want %v", stampOf(w), latest)
	}
}

func stampOf(w *world) string {
	_, stamp := w.api.AppendStamp(nil)
	return string(stamp)
}
