// SPDX-License-Identifier: Apache-2.0

package ethapi_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"glimpse/chain"
	"glimpse/head"
	"glimpse/jsonrpc"
	"glimpse/watch"
)

// told is a message of a storage subscription.
type told struct {
	Start     bool
	Address   chain.Address
	Slot      chain.Slot
	Value     chain.Value
	Tag       watch.Tag
	Level     watch.Level
	Block     hexutil.Uint64
	BlockHash *chain.Hash
	Index     *hexutil.Uint64
	Snapshot  string
	More      bool
}

// A replayer is a client that knows only what it was sent, and one listing where
// it did not name slots.
type replayer struct {
	name         string
	address      chain.Address
	slots        []chain.Slot // those that it knows about
	subscription jsonrpc.Subscription
	state        map[watch.Tag]map[chain.Slot]chain.Value
	levels       map[watch.Level]int
}

var bothTags = map[watch.Tag]chain.Selector{watch.Latest: chain.Latest, watch.Pending: chain.Pending}

// join adds a random subscriber, who sees exactly what a client would.
func (w *liveWorld) join(levels map[watch.Level]int) *replayer {
	w.t.Helper()
	r := &replayer{
		address: w.world.Addresses[w.rng.IntN(len(w.world.Addresses))],
		slots:   w.world.Slots,
		levels:  levels,
		state:   map[watch.Tag]map[chain.Slot]chain.Value{watch.Latest: {}, watch.Pending: {}},
	}
	params := fmt.Sprintf(`["storage",{"address":%q}]`, r.address)
	whole := w.rng.IntN(2) == 0
	if !whole {
		r.slots = slices.Clone(w.world.Slots[:1+w.rng.IntN(3)])
		named, err := json.Marshal(append(r.slots, r.slots[0])) // one comes twice
		w.no(err)
		params = fmt.Sprintf(`["storage",{"address":%q,"slots":%s}]`, r.address, named)
	}
	r.name = params
	r.subscription = subscribe(w.t, w.notifier, params)
	messages := r.decode(w.t, drain(w.t, r.subscription))
	if len(messages) == 0 || !messages[0].Start {
		w.t.Fatalf("%s: begins with %v, want a start", r.name, messages)
	}
	if whole {
		r.list(w, messages[0])
	} else if want := 1 + 2*len(r.slots); len(messages) != want {
		w.t.Fatalf("%s: %d messages at first, want %d", r.name, len(messages), want)
	}
	for _, m := range messages[1:] {
		r.state[m.Tag][m.Slot] = m.Value
	}
	return r
}

// list takes what the contract holds at the block of the start.
func (r *replayer) list(w *liveWorld, start told) {
	w.t.Helper()
	lease := w.published.Acquire()
	defer lease.Release()
	slots, _, err := lease.Slots(chain.ByHash(*start.BlockHash), r.address, nil, 1000)
	w.no(err)
	for _, s := range slots {
		r.state[watch.Latest][s.Slot], r.state[watch.Pending][s.Slot] = s.Value, s.Value
	}
}

func (r *replayer) decode(t *testing.T, texts []string) (all []told) {
	t.Helper()
	for i, text := range texts {
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		var m told
		if err := d.Decode(&m); err != nil {
			t.Fatalf("%s: %s: %v", r.name, text, err)
		}
		if m.More != (i+1 < len(texts)) || m.Address != r.address {
			t.Fatalf("%s: message %d of %d: %s", r.name, i, len(texts), text)
		}
		all = append(all, m)
	}
	return all
}

// follow replays one step, and compares with what the node answers now.
func (r *replayer) follow(w *liveWorld, now *head.Lease) {
	t := w.t
	t.Helper()
	for _, m := range r.decode(t, drain(t, r.subscription)) {
		if m.Snapshot != string(now.Stamp()) {
			t.Fatalf("%s: snapshot %s, want %s", r.name, m.Snapshot, now.Stamp())
		}
		if r.state[m.Tag][m.Slot] == m.Value {
			t.Fatalf("%s: told again: %+v", r.name, m)
		}
		r.state[m.Tag][m.Slot] = m.Value
		r.checkLevel(w, now, m)
	}
	r.compare(t, now)
}

func (r *replayer) compare(t *testing.T, now *head.Lease) {
	t.Helper()
	for tag, sel := range bothTags {
		view, err := now.View(sel)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range r.slots {
			want, err := view.Slot(r.address, k)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.state[tag][k]; got != want {
				t.Fatalf("%s at %s: %s of %s\n got %s\nwant %s", r.name, now.Stamp(), k, tag, got, want)
			}
		}
	}
}

// checkLevel holds a message against what the node says about the block that it
// names.
func (r *replayer) checkLevel(w *liveWorld, now *head.Lease, m told) {
	t := w.t
	t.Helper()
	r.levels[m.Level]++
	if want := w.levelNow(now, m); m.Level != want {
		t.Fatalf("%s: %+v, want it %s", r.name, m, want)
	}
	if m.Level == watch.Preconfirmed {
		p, ok := now.Pending()
		if !ok || m.Tag != watch.Pending || m.BlockHash != nil || m.Index == nil ||
			uint64(*m.Index) != p.Index || uint64(m.Block) != p.Header.Number.Uint64() {
			t.Fatalf("%s: %+v, but pending is %v", r.name, m, p)
		}
		return
	}
	hash, err := now.Hash(chain.Number(m.Block))
	if err != nil || m.BlockHash == nil || *m.BlockHash != hash || m.Index != nil {
		t.Fatalf("%s: %+v, but block %d is %s, %v", r.name, m, m.Block, hash, err)
	}
	if m.Level == watch.Sealed && !writes(w.model.Blocks[m.Block].Diff, m.Address, m.Slot) {
		t.Fatalf("%s: %+v, but the block does not write it", r.name, m)
	}
}

// levelNow says how firm a value is that changed since the watcher looked last, in
// the words of docs/rpc.md.
func (w *liveWorld) levelNow(now *head.Lease, m told) watch.Level {
	if o := w.overlay; m.Tag == watch.Pending && o != nil && o.parent == now.Latest() && writes(&o.diff, m.Address, m.Slot) {
		return watch.Preconfirmed
	}
	for i, b := range w.model.Blocks {
		if (i >= len(w.seen) || w.seen[i] != b.Hash) && writes(b.Diff, m.Address, m.Slot) {
			return watch.Sealed
		}
	}
	return watch.Revoked
}

func writes(d *chain.Diff, addr chain.Address, k chain.Slot) bool {
	return slices.ContainsFunc(d.Accounts, func(a chain.AccountDiff) bool {
		return a.Address == addr && (a.Wiped || slices.ContainsFunc(a.Slots, func(s chain.SlotDiff) bool { return s.Slot == k }))
	})
}

// A subscriber that replays what it was sent holds exactly what the node answers,
// whatever happens and however many snapshots it does not get to see.
func TestReplayedStorageIsTheNodes(t *testing.T) {
	levels := make(map[watch.Level]int)
	for seed := range uint64(12) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { replay(t, seed, levels) })
	}
	for _, level := range []watch.Level{watch.Preconfirmed, watch.Sealed, watch.Revoked} {
		if levels[level] < 100 {
			t.Errorf("%d changes were %s: the test says little about them", levels[level], level)
		}
	}
}

func replay(t *testing.T, seed uint64, levels map[watch.Level]int) {
	w := newLiveWorld(t, seed)
	w.look()
	var all []*replayer
	for range 60 {
		// The watcher rests: there is nothing that it has not seen.
		for range w.rng.IntN(3) {
			all = append(all, w.join(levels))
		}
		if len(all) > 8 {
			all[0].subscription.Close()
			all = all[1:]
		}
		// The gate is the last to be told, so that all others were.
		last, err := w.watcher.Subscribe(t.Context(), w.gate)
		w.no(err)
		w.happen()
		<-w.gate.arrived
		w.check(all)
		if w.rng.IntN(3) == 0 {
			for range 2 + w.rng.IntN(3) { // the watcher sees only the last of them
				w.happen()
			}
			w.gate.proceed <- struct{}{}
			<-w.gate.arrived
			w.check(all)
		}
		last.Close()
		w.gate.proceed <- struct{}{}
	}
}

func (w *liveWorld) check(all []*replayer) {
	w.t.Helper()
	now := w.published.Acquire()
	defer now.Release()
	for _, r := range all {
		r.follow(w, now)
	}
	w.look()
}

// look notes which blocks the watcher has seen.
func (w *liveWorld) look() {
	w.seen = nil
	for _, b := range w.model.Blocks {
		w.seen = append(w.seen, b.Hash)
	}
}
