// SPDX-License-Identifier: Apache-2.0

package replica_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"glimpse/chain"
	"glimpse/replica"
	"glimpse/replica/replicatest"
)

// A delivery is a random way from a writer to a replica: a log of durable events,
// which are read in order but again from somewhere after each trouble, and pending
// events, of which any may be lost, doubled or late.
type delivery struct {
	t       *testing.T
	random  *rand.Rand
	writer  *replicatest.Writer
	store   *replicatest.Store
	applier *replica.Applier

	epoch  uint64
	log    []*replica.Event // durable, in the order of the stream
	next   int              // what the replica reads next
	cursor chain.Ref
	past   []*replica.Sealed // the writer's chain when it was last told of

	sent         *replica.Overlay
	pendingOrder uint64
	inFlight     []*replica.Event

	// What the writer was at, in order of time, and where the replica is in it.
	heads    []chain.Ref
	tops     [][]byte
	head     int
	top      int
	restarts bool // readers may go back once: the replica is not ready
}

func TestRandomDeliveries(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			d := newDelivery(t, seed)
			for range 400 {
				d.step()
			}
			d.finish()
		})
	}
}

func newDelivery(t *testing.T, seed uint64) *delivery {
	d := &delivery{t: t, random: rand.New(rand.NewPCG(seed, 1)), writer: replicatest.NewWriter(seed)}
	d.use(replicatest.NewStore(d.writer, 0))
	d.cursor = d.writer.Head()
	d.observe()
	d.restart()
	return d
}

func (d *delivery) use(s *replicatest.Store) {
	d.store = s
	d.store.OnPublish = d.check
	d.applier = replica.NewApplier(d.writer.ID, d.store, nil)
	d.next = 0
}

// restart begins an epoch of the writer.
func (d *delivery) restart() {
	d.epoch++
	d.pendingOrder, d.sent = 0, nil
	d.durable(&replica.Unwound{To: d.cursor, Goal: d.cursor})
}

func (d *delivery) durable(body replica.Body) {
	order := uint64(1)
	if n := len(d.log); n > 0 && d.log[n-1].Epoch == d.epoch {
		order = d.log[n-1].Order + 1
	}
	d.log = append(d.log, d.wire(&replica.Event{Chain: d.writer.ID, Epoch: d.epoch, Order: order, Body: body}))
}

// wire sends an event through its encoding, in pieces.
func (d *delivery) wire(e *replica.Event) *replica.Event {
	messages, err := replica.Cut(e, 100, 1<<20)
	if err != nil {
		d.t.Fatal(err)
	}
	var a replica.Assembler
	var got *replica.Event
	for _, m := range messages {
		got, err = a.Add(frame(d.t, m))
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return got
}

// observe notes what the writer is at.
func (d *delivery) observe() {
	d.heads = append(d.heads, d.writer.Head())
	d.tops = append(d.tops, topOf(d.writer.Overlay()))
}

// topOf is the newest pre-confirmed block, which names all below it by hash.
func topOf(o *replica.Overlay) []byte {
	if o == nil || len(o.Blocks) == 0 {
		return nil
	}
	top := o.Blocks[len(o.Blocks)-1:]
	return replicatest.Bytes(&replica.Overlay{Blocks: top})
}

// check is called with each thing that readers see: it must be what the writer
// was at, and never older than what they saw before.
func (d *delivery) check(s replicatest.Shown) {
	if s.Head != d.heads[d.head] {
		from := d.head
		if d.restarts {
			from = 0
		}
		i := slices.Index(d.heads[from:], s.Head)
		if i < 0 {
			d.t.Fatalf("readers see block %s, which the writer was not at after %s", s.Head, d.heads[d.head])
		}
		d.head = from + i
		d.restarts = false
	}
	if s.Overlay == nil {
		return
	}
	if s.Overlay.Parent != s.Head {
		d.t.Fatalf("readers see pre-confirmed state on %s at block %s", s.Overlay.Parent, s.Head)
	}
	top := topOf(s.Overlay)
	i := slices.IndexFunc(d.tops[d.top:], func(b []byte) bool { return bytes.Equal(b, top) })
	if i < 0 {
		d.t.Fatalf("readers see pre-confirmed state at block %s that the writer did not have, or not after what they saw", s.Head)
	}
	d.top += i
}

func (d *delivery) step() {
	switch n := d.random.IntN(100); {
	case n < 40:
		d.writer.Step()
		d.observe()
		d.tell()
	case n < 43:
		d.restart()
	case n < 45:
		// The replica dies, perhaps in the middle of a branch.
		d.restarts = true
		d.use(d.store.Restarted())
	case n < 47:
		d.store.Fail = func(string) error { return replicatest.ErrBroken }
		d.read()
		d.store.Fail = nil
	case n < 50:
		d.next = d.random.IntN(d.next + 1) // read again what was read
	case n < 52:
		d.next = min(len(d.log), d.next+1) // lost
	case n < 75:
		d.deliverPending()
	default:
		d.read()
	}
}

// tell writes down what the writer has done since it was last told of.
func (d *delivery) tell() {
	d.tellBlocks()
	o := d.writer.Overlay()
	p := &replica.Pending{Parent: o.Parent, GoodFor: time.Minute}
	if parts, ok := o.PartsSince(cmpOverlay(d.sent)); ok && d.random.IntN(4) > 0 {
		p.Base, p.Blocks = d.pendingOrder, parts
	} else {
		p.Blocks = o.Parts()
	}
	d.sent = o
	d.pendingOrder++
	e := d.wire(&replica.Event{Chain: d.writer.ID, Epoch: d.epoch, Order: d.pendingOrder, Body: p})
	if d.random.IntN(10) > 0 {
		d.inFlight = append(d.inFlight, e)
	}
}

func cmpOverlay(o *replica.Overlay) *replica.Overlay {
	if o == nil {
		return new(replica.Overlay)
	}
	return o
}

func (d *delivery) tellBlocks() {
	c, err := d.writer.Open()
	if err != nil {
		d.t.Fatal(err)
	}
	head := c.Head()
	to := d.cursor
	for n := min(to.Number, head.Number); ; n-- {
		hash, err := c.Hash(n)
		if err != nil {
			d.t.Fatal(err)
		}
		if n == 0 || d.was(n) == hash {
			to = chain.Ref{Number: n, Hash: hash}
			break
		}
	}
	if to != d.cursor {
		d.durable(&replica.Unwound{To: to, Goal: head})
	}
	d.past = d.past[:min(len(d.past), int(to.Number))]
	for n := to.Number + 1; n <= head.Number; n++ {
		s, err := c.Sealed(n)
		if err != nil {
			d.t.Fatal(err)
		}
		d.past = append(d.past, s)
		d.durable(s)
	}
	d.cursor = head
	if d.random.IntN(5) == 0 {
		d.durable(&replica.Tags{Head: head, Marks: c.Marks()})
	}
}

// was returns the hash of a block that the log led to.
func (d *delivery) was(n chain.Number) chain.Hash {
	if n == 0 {
		return d.writer.ID.Genesis
	}
	return d.past[n-1].Hash
}

func (d *delivery) deliverPending() {
	if len(d.inFlight) == 0 {
		return
	}
	i := 0
	if d.random.IntN(10) == 0 {
		i = d.random.IntN(len(d.inFlight))
	}
	e := d.inFlight[i]
	if d.random.IntN(10) > 0 {
		d.inFlight = slices.Delete(d.inFlight, i, i+1)
	}
	d.good(d.applier.Apply(e))
}

// read gives the replica the next durable event, and goes back where it asks for
// that.
func (d *delivery) read() {
	if d.next == len(d.log) {
		d.good(d.applier.CaughtUp())
		return
	}
	e := d.log[d.next]
	d.next++
	decision := d.applier.Apply(e)
	d.good(decision)
	if decision.Outcome == replica.Gap || decision.Outcome == replica.Failed {
		d.applier.Restart()
		d.next = 0
		return
	}
	if d.next == len(d.log) {
		d.good(d.applier.CaughtUp())
	}
}

func (d *delivery) good(decision replica.Decision) {
	d.t.Helper()
	if decision.Outcome == replica.Mismatch || decision.Outcome == replica.Foreign || decision.Outcome == replica.Failed && d.store.Fail == nil {
		d.t.Fatalf("%v: %v", decision.Outcome, decision.Err)
	}
}

// finish delivers everything, after which both must be the same.
func (d *delivery) finish() {
	d.writer.Flashblock(true)
	d.observe()
	d.sent = nil
	d.inFlight = nil
	for !d.applier.Live() || d.next < len(d.log) {
		d.read()
	}
	for !replicatest.Equal(d.store.Shown().Overlay, d.writer.Overlay()) {
		d.tell()
		for len(d.inFlight) > 0 {
			d.deliverPending()
		}
		for d.next < len(d.log) {
			d.read()
		}
	}
	shown := d.store.Shown()
	if shown.Head != d.writer.Head() {
		d.t.Errorf("readers see block %s, want %s", shown.Head, d.writer.Head())
	}
}
