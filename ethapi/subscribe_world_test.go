// SPDX-License-Identifier: Apache-2.0

package ethapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/archive"
	"glimpse/archive/archivetest"
	"glimpse/chain"
	"glimpse/ethapi"
	"glimpse/head"
	"glimpse/jsonrpc"
	"glimpse/watch"
)

// promised is an overlay in maps: what is pre-confirmed of each address.
type promised struct {
	parent chain.Ref
	block  *chain.Preconfirmed
	diff   chain.Diff
}

// extended returns p with the changes of one more flashblock.
func (p *promised) extended(d *chain.Diff) *promised {
	next := &promised{parent: p.parent, block: &chain.Preconfirmed{Header: p.block.Header, Index: p.block.Index + 1}}
	next.diff.Accounts = slices.Clone(p.diff.Accounts)
	for _, a := range d.Accounts {
		a = chain.AccountDiff{Address: a.Address, Wiped: a.Wiped, Slots: a.Slots}
		i := slices.IndexFunc(next.diff.Accounts, func(x chain.AccountDiff) bool { return x.Address == a.Address })
		switch {
		case !a.Wiped && len(a.Slots) == 0: // only its balance changed
		case i < 0:
			next.diff.Accounts = append(next.diff.Accounts, a)
		case a.Wiped:
			next.diff.Accounts[i] = a
		default:
			next.diff.Accounts[i] = onTop(next.diff.Accounts[i], a)
		}
	}
	next.diff.Sort()
	return next
}

func onTop(below, above chain.AccountDiff) chain.AccountDiff {
	values := make(map[chain.Slot]chain.Value)
	for _, s := range slices.Concat(below.Slots, above.Slots) {
		values[s.Slot] = s.Value
	}
	below.Slots = nil
	for k, v := range values {
		if !below.Wiped || v != (chain.Value{}) {
			below.Slots = append(below.Slots, chain.SlotDiff{Slot: k, Value: v})
		}
	}
	return below
}

func (p *promised) Parent() chain.Ref                         { return p.parent }
func (p *promised) Preconfirmed() (*chain.Preconfirmed, bool) { return p.block, true }
func (p *promised) Diff() *chain.Diff                         { return &p.diff }
func (p *promised) Transaction(chain.Hash) (*chain.Preconfirmed, int, bool) {
	return nil, 0, false
}
func (p *promised) Account(chain.Address) (chain.Account, bool) { return chain.Account{}, false }
func (p *promised) Code(chain.Hash) ([]byte, bool)              { return nil, false }

func (p *promised) Slot(a chain.Address, k chain.Slot) (chain.Value, bool) {
	slots, _, wiped := p.Storage(a, nil, 1<<20)
	for _, s := range slots {
		if s.Slot == k {
			return s.Value, true
		}
	}
	return chain.Value{}, wiped
}

func (p *promised) Storage(a chain.Address, after *chain.Slot, limit int) (slots []chain.SlotDiff, more, wiped bool) {
	for _, x := range p.diff.Accounts {
		if x.Address != a {
			continue
		}
		for _, s := range x.Slots {
			if after == nil || s.Slot.Cmp(*after) > 0 {
				slots = append(slots, s)
			}
		}
		wiped = x.Wiped
	}
	return slots[:min(limit, len(slots))], len(slots) > limit, wiped
}

// A liveWorld is a node that has a random history while it is watched: a real
// archive, a real publisher and the API.
type liveWorld struct {
	t         *testing.T
	rng       *rand.Rand
	world     archivetest.World
	model     *archivetest.Model
	db        *archive.DB
	published head.Publisher
	overlay   *promised // nil where nothing is pre-confirmed
	builds    uint64
	seen      []chain.Hash // of the blocks when the watcher looked last
	watcher   *ethapi.Watcher
	notifier  *ethapi.Notifier
	gate      *gate
}

func newLiveWorld(t *testing.T, seed uint64) *liveWorld {
	t.Helper()
	w := &liveWorld{t: t, rng: rand.New(rand.NewPCG(seed, 4)), world: archivetest.NewWorld(4)}
	db, err := archive.Open("", archive.Options{CacheBytes: 4 << 20})
	w.no(err)
	id, genesis := w.world.Genesis(w.rng)
	w.no(db.Init(id, genesis))
	w.db, w.model = db, archivetest.NewModel(id, genesis)
	for range 3 {
		w.seal()
	}
	w.publish()
	w.watcher = watch.New(func() ethapi.WatchedSnapshot { return w.published.Acquire() }, watch.Options{})
	w.notifier = newAPI(new(fake), func(c *ethapi.Config) {
		c.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}).Notifying(w.watcher)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = w.watcher.Run(ctx) }() // returns only ctx's error
	w.gate = &gate{arrived: make(chan struct{}), proceed: make(chan struct{}), open: make(chan struct{})}
	t.Cleanup(func() {
		close(w.gate.open)
		cancel()
		<-ended
		w.published.Close()
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return w
}

func (w *liveWorld) no(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *liveWorld) publish() {
	w.t.Helper()
	r, err := w.db.NewReader()
	w.no(err)
	var o head.Overlay
	if w.overlay != nil {
		o = w.overlay
	}
	w.published.Publish(stored{r}, o, time.Time{})
}

// seal adds a random block, or one that does what was promised.
func (w *liveWorld) seal() {
	w.t.Helper()
	b := w.world.Block(w.rng, w.model)
	if o := w.overlay; o != nil && o.parent == w.model.Head() && w.rng.IntN(2) == 0 {
		b.Diff = &o.diff
	}
	w.no(w.db.CommitUnsynced(b))
	w.model.Commit(b)
}

// promise begins a block anew on the head, above it or, with more flashblocks, goes
// on with the one there is.
func (w *liveWorld) promise() {
	d := w.world.Block(w.rng, w.model).Diff
	if w.overlay == nil || w.overlay.parent != w.model.Head() || w.rng.IntN(6) == 0 {
		w.builds++ // makes the index, and so the stamp, one of its own
		number := int64(w.model.Head().Number) + 1 + int64(w.rng.IntN(2))
		w.overlay = &promised{parent: w.model.Head(), block: &chain.Preconfirmed{
			Header: &types.Header{Number: big.NewInt(number)}, Index: w.builds << 16,
		}}
	}
	w.overlay = w.overlay.extended(d)
}

// reorg replaces the newest blocks, and sometimes leaves fewer than there were.
func (w *liveWorld) reorg() {
	w.t.Helper()
	depth := min(1+w.rng.IntN(4), int(w.model.Head().Number))
	to := w.model.Head().Number - chain.Number(depth)
	w.no(w.db.Unwind(to, nil))
	w.model.Unwind(to, nil)
	for range w.rng.IntN(6) {
		w.seal()
	}
}

// happen makes one thing happen and publishes it.
func (w *liveWorld) happen() {
	w.t.Helper()
	switch w.rng.IntN(10) {
	case 0, 1:
		w.reorg()
	case 2:
		w.overlay = nil // revoked
	case 3, 4, 5:
		w.seal()
		if w.rng.IntN(3) == 0 { // what stands on it is known already
			w.promise()
		}
	default:
		w.promise()
	}
	w.publish()
}

// A gate stops the watcher at the end of each step, so that what the others were
// told can be looked at, and snapshots can come and go unseen.
type gate struct {
	arrived, proceed chan struct{}
	open             chan struct{} // closed when the test is over
}

func (g *gate) Storage() (a chain.Address, ok bool) { return a, false }
func (g *gate) Begin(ethapi.WatchedSnapshot) ([]watch.Message, error) {
	return nil, nil
}
func (g *gate) Step(*watch.Step[ethapi.WatchedSnapshot]) ([]watch.Message, error) {
	select {
	case g.arrived <- struct{}{}:
	case <-g.open:
	}
	select {
	case <-g.proceed:
	case <-g.open:
	}
	return nil, nil
}

// subscribe opens a subscription with params as JSON.
func subscribe(t *testing.T, n *ethapi.Notifier, params string) jsonrpc.Subscription {
	t.Helper()
	s, err := trySubscribe(t, n, params)
	if err != nil {
		t.Fatalf("eth_subscribe%s: %v", params, err)
	}
	return s
}

func trySubscribe(t *testing.T, n *ethapi.Notifier, params string) (jsonrpc.Subscription, *jsonrpc.Error) {
	t.Helper()
	values, ok := jsonrpc.Value(params).Elements()
	if !ok || !json.Valid([]byte(params)) {
		t.Fatalf("params are not an array: %s", params)
	}
	return n.Subscribe(t.Context(), values)
}

// drain returns what waits now.
func drain(t *testing.T, s jsonrpc.Subscription) (all []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for {
		text, err := s.Next(ctx, nil)
		if err == context.Canceled {
			return all
		}
		if err != nil {
			return append(all, fmt.Sprintf("end: %v", err))
		}
		if !json.Valid(text) {
			t.Fatalf("not JSON: %s", text)
		}
		all = append(all, string(text))
	}
}
