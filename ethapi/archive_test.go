// SPDX-License-Identifier: Apache-2.0

package ethapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/archive"
	"glimpse/archive/archivetest"
	"glimpse/chain"
	"glimpse/ethapi"
	"glimpse/head"
	"glimpse/jsonrpc"
)

// stored lets head read an archive.Reader.
type stored struct{ *archive.Reader }

func (s stored) Account(n chain.Number, a chain.Address) (chain.Account, error) {
	view, err := s.At(n)
	if err != nil {
		return chain.Account{}, err
	}
	return view.Account(a)
}

func (s stored) Slot(n chain.Number, a chain.Address, k chain.Slot) (chain.Value, error) {
	view, err := s.At(n)
	if err != nil {
		return chain.Value{}, err
	}
	return view.Slot(a, k)
}

func (s stored) Code(h chain.Hash) ([]byte, error) {
	view, err := s.At(s.Head().Number)
	if err != nil {
		return nil, err
	}
	return view.Code(h)
}

// diffOverlay is one Diff as an overlay, searched in the simplest way.
type diffOverlay struct {
	parent chain.Ref
	diff   *chain.Diff
}

func (o diffOverlay) Parent() chain.Ref { return o.parent }
func (o diffOverlay) Preconfirmed() (*chain.Preconfirmed, bool) {
	return &chain.Preconfirmed{Header: &types.Header{Number: new(big.Int).SetUint64(uint64(o.parent.Number) + 1)}, Index: 2}, true
}
func (o diffOverlay) Transaction(chain.Hash) (*chain.Preconfirmed, int, bool) { return nil, 0, false }
func (o diffOverlay) of(a chain.Address) chain.AccountDiff {
	for _, d := range o.diff.Accounts {
		if d.Address == a {
			return d
		}
	}
	return chain.AccountDiff{}
}
func (o diffOverlay) Account(a chain.Address) (chain.Account, bool) {
	d := o.of(a)
	return d.Account, d.Changed
}
func (o diffOverlay) Slot(a chain.Address, k chain.Slot) (chain.Value, bool) {
	d := o.of(a)
	for _, s := range d.Slots {
		if s.Slot == k {
			return s.Value, true
		}
	}
	return chain.Value{}, d.Wiped
}
func (o diffOverlay) Code(h chain.Hash) ([]byte, bool) { return nil, false }
func (o diffOverlay) Storage(a chain.Address, after *chain.Slot, limit int) (slots []chain.SlotDiff, more, wiped bool) {
	d := o.of(a)
	from := 0
	if after != nil {
		from = sort.Search(len(d.Slots), func(i int) bool { return d.Slots[i].Slot.Cmp(*after) > 0 })
	}
	slots = d.Slots[from:min(from+limit, len(d.Slots))]
	return slots, from+len(slots) < len(d.Slots), d.Wiped
}
func (o diffOverlay) Diff() *chain.Diff { return o.diff }

// A world is an archive, its model, and an API on what is published of it.
type world struct {
	t     *testing.T
	rng   *rand.Rand
	db    *archive.DB
	model *archivetest.Model
	archivetest.World
	published head.Publisher
	api       *ethapi.API
}

func newWorld(t *testing.T, seed uint64, blocks int) *world {
	t.Helper()
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 0)), World: archivetest.NewWorld(5)}
	id, genesis := w.Genesis(w.rng)
	w.model = archivetest.NewModel(id, genesis)
	w.db = openArchive(t, id, genesis)
	for range blocks {
		b := w.Block(w.rng, w.model)
		if err := w.db.Commit(b); err != nil {
			t.Fatal(err)
		}
		w.model.Commit(b)
	}
	w.api = newArchiveAPI(&w.published)
	w.publish(nil)
	t.Cleanup(w.published.Close)
	return w
}

func openArchive(t *testing.T, id archive.Identity, genesis archive.Block) *archive.DB {
	t.Helper()
	db, err := archive.Open("", archive.Options{CacheBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := db.Init(id, genesis); err != nil {
		t.Fatal(err)
	}
	return db
}

func newArchiveAPI(p *head.Publisher) *ethapi.API {
	return ethapi.New(ethapi.Config{
		ChainID: 1337, Version: "glimpse/test",
		Acquire: func() ethapi.Snapshot { return p.Acquire() },
		Log:     slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
}

// publish publishes the store as it is, with a block on top that is only promised
// where diff is not nil.
func (w *world) publish(diff *chain.Diff) {
	w.t.Helper()
	r, err := w.db.NewReader()
	if err != nil {
		w.t.Fatal(err)
	}
	var o head.Overlay
	if diff != nil {
		o = diffOverlay{r.Head(), diff}
	}
	w.published.Publish(stored{r}, o, time.Time{})
}

// ask makes one call and reads the result into out.
func ask(t testing.TB, api *ethapi.API, out any, method, format string, args ...any) *jsonrpc.Error {
	t.Helper()
	params, ok := jsonrpc.Value(fmt.Sprintf(format, args...)).Elements()
	if !ok {
		t.Fatalf("not an array: "+format, args...)
	}
	s := api.Begin(t.Context(), nil)
	defer s.End()
	text, bad := s.Call(t.Context(), nil, []byte(method), params)
	if bad != nil {
		return bad
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(out); err != nil {
		t.Fatalf("%s answers %s: %v", method, text, err)
	}
	return nil
}

// must is ask where no error is expected.
func (w *world) must(out any, method, format string, args ...any) {
	w.t.Helper()
	if bad := ask(w.t, w.api, out, method, format, args...); bad != nil {
		w.t.Fatalf("%s%s: %v", method, fmt.Sprintf(format, args...), bad)
	}
}
