// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"glimpse/archive"
	"glimpse/archive/archivetest"
	"glimpse/chain"
)

// TestRandomHistory drives an archive and the model with one random history of
// commits, unwinds, prunes, restarts and crashes, and compares all answers
// after each step. GLIMPSE_SEEDS sets how many histories.
func TestRandomHistory(t *testing.T) {
	seeds := 20
	if underRace { // it takes ten times as long, and one goroutine does it all
		seeds = 5
	}
	if s := os.Getenv("GLIMPSE_SEEDS"); s != "" {
		var err error
		if seeds, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	for seed := range uint64(seeds) {
		for name, begin := range histories {
			t.Run(fmt.Sprintf("%s,seed=%d", name, seed), func(t *testing.T) {
				h := begin(t, seed)
				for range 60 {
					h.step()
				}
				h.releaseHeld()
			})
		}
	}
}

// histories are the ways that a store begins.
var histories = map[string]func(*testing.T, uint64) *history{
	"full":   newHistory,
	"sparse": newSparseHistory,
}

// A history is one archive and what it should be.
type history struct {
	t     *testing.T
	rng   *rand.Rand
	world archivetest.World
	disk  *archivetest.Disk
	db    *archive.DB
	model *archivetest.Model

	// since holds the model after the last durable write and after each write
	// since: a crash leaves one of them.
	since []*archivetest.Model
	held  []heldReader
}

// A heldReader is an old Reader and the model as it was then.
type heldReader struct {
	reader *archive.Reader
	model  *archivetest.Model
}

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{t: t, rng: newRand(seed), world: archivetest.NewWorld(5), disk: archivetest.NewDisk()}
	id, genesis := h.world.Genesis(h.rng)
	h.db = open(t, h.disk)
	h.must(h.db.Init(id, genesis))
	h.model = archivetest.NewModel(id, genesis)
	h.durable()
	return h
}

// newSparseHistory begins with the last of a few blocks and none of its state.
func newSparseHistory(t *testing.T, seed uint64) *history {
	h := &history{t: t, rng: newRand(seed), world: archivetest.NewWorld(5), disk: archivetest.NewDisk()}
	id, genesis := h.world.Genesis(h.rng)
	h.model = archivetest.NewModel(id, genesis)
	for range h.rng.IntN(5) {
		h.model.Commit(h.world.Block(h.rng, h.model))
	}
	h.db = open(t, h.disk)
	h.must(h.db.InitAt(id, h.model.BeginAtHead()))
	h.durable()
	return h
}

func (h *history) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *history) durable() { h.since = []*archivetest.Model{h.model.Clone()} }
func (h *history) written() { h.since = append(h.since, h.model.Clone()) }

func (h *history) step() {
	h.t.Helper()
	switch k := h.rng.IntN(25); {
	case k < 7:
		b := h.world.Block(h.rng, h.model)
		h.must(h.db.Commit(b))
		h.model.Commit(b)
		h.durable()
	case k < 14:
		b := h.world.Block(h.rng, h.model)
		h.must(h.db.CommitUnsynced(b))
		h.model.Commit(b)
		h.written()
	case k < 15:
		to := h.between(h.model.Oldest, h.model.Head().Number)
		side := h.world.SideWrites(h.rng)
		h.must(h.db.Unwind(to, side))
		h.model.Unwind(to, side)
		h.written()
	case k < 16:
		h.prune()
	case k < 17:
		h.tags()
	case k < 18:
		side := h.world.SideWrites(h.rng)
		h.must(h.db.WriteSide(side))
		h.model.WriteSide(side)
		h.written()
	case k < 19:
		h.must(h.db.Sync())
		h.durable()
	case k < 20:
		h.reopen()
	case k < 21:
		h.crash()
	case k < 22:
		h.must(h.db.Compact()) // changes nothing, and all of it is durable
		h.durable()
	case k < 24 && h.model.Sparse:
		facts := h.world.Facts(h.rng, h.model)
		h.must(h.db.KeepOrigin(facts))
		h.model.KeepOrigin(facts)
		h.written()
	default:
		h.hold()
	}
	h.compare()
}

func (h *history) between(low, high chain.Number) chain.Number {
	return low + chain.Number(h.rng.Uint64N(uint64(high-low)+1))
}

// prune notes the model at every step: a crash may fall between two blocks.
func (h *history) prune() {
	oldest := h.between(h.model.Oldest, h.model.Head().Number)
	h.must(h.db.Prune(oldest))
	for h.model.Oldest < oldest {
		h.model.Prune(h.model.Oldest + 1)
		h.written()
	}
}

func (h *history) tags() {
	pick := func() *chain.Ref {
		if h.rng.IntN(4) == 0 {
			return nil
		}
		ref := h.model.Blocks[h.between(0, h.model.Head().Number)].Ref
		return &ref
	}
	safe, finalized := pick(), pick()
	h.must(h.db.SetTags(safe, finalized))
	h.model.Safe, h.model.Finalized = safe, finalized
	h.written()
}

func (h *history) reopen() {
	h.releaseHeld()
	h.must(h.db.Close())
	h.db = open(h.t, h.disk)
	h.durable()
}

// crash continues on what the disk would hold after losing power, which must
// be the end of one of the writes since the last durable one (P5).
func (h *history) crash() {
	h.t.Helper()
	h.releaseHeld()
	disk := h.disk.Crash(h.rng)
	h.must(h.db.Close())
	h.disk, h.db = disk, open(h.t, disk)
	r := h.reader()
	defer r.Release()
	for i := len(h.since) - 1; i >= 0; i-- {
		if archivetest.Matches(h.t, h.world, r, h.since[i]) {
			h.model = h.since[i].Clone()
			h.durable()
			return
		}
	}
	h.t.Fatalf("after a crash: got head %s, oldest %d, want one of the %d states since the last sync",
		r.Head(), r.Oldest(), len(h.since))
}

func (h *history) reader() *archive.Reader {
	h.t.Helper()
	r, err := h.db.NewReader()
	h.must(err)
	return r
}

// hold keeps the present Reader for later and lets an old one go.
func (h *history) hold() {
	if len(h.held) >= 4 {
		h.held[0].reader.Release()
		h.held = h.held[1:]
	}
	h.held = append(h.held, heldReader{h.reader(), h.model.Clone()})
}

func (h *history) releaseHeld() {
	for _, old := range h.held {
		old.reader.Release()
	}
	h.held = nil
}

// compare asks the present Reader and one old one (A4).
func (h *history) compare() {
	h.t.Helper()
	r := h.reader()
	archivetest.Compare(h.t, h.rng, h.world, r, h.model)
	r.Release()
	if len(h.held) > 0 {
		old := h.held[h.rng.IntN(len(h.held))]
		old.model.Known = h.model.Known // facts reach Readers of any age
		archivetest.Compare(h.t, h.rng, h.world, old.reader, old.model)
	}
}

// Whatever happened on the way, the same blocks give the same content.
func TestDigestDependsOnBlocksAlone(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			crooked := newHistory(t, seed)
			first := crooked.model.Blocks[0]
			for range 30 {
				switch crooked.rng.IntN(5) {
				case 0:
					crooked.reopen()
				case 4:
					crooked.crash()
				case 1:
					to := crooked.between(0, crooked.model.Head().Number)
					crooked.must(crooked.db.Unwind(to, nil))
					crooked.model.Unwind(to, nil)
					crooked.written()
				default:
					b := crooked.world.Block(crooked.rng, crooked.model)
					b.Side = nil
					crooked.must(crooked.db.Commit(b))
					crooked.model.Commit(b)
					crooked.durable()
				}
			}
			straight := open(t, archivetest.NewDisk())
			crooked.must(straight.Init(crooked.model.Identity, first.Block))
			for _, b := range crooked.model.Blocks[1:] {
				crooked.must(straight.CommitUnsynced(b.Block))
			}
			got, err := crooked.db.Check(t.Context(), nil)
			crooked.must(err)
			want, err := straight.Check(t.Context(), nil)
			crooked.must(err)
			if got.Digest != want.Digest {
				t.Errorf("digest: got %x, want %x", got.Digest, want.Digest)
			}
			sameDigests(t, crooked.db, straight)
		})
	}
}
