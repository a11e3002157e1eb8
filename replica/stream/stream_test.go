// SPDX-License-Identifier: Apache-2.0

package stream_test

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"glimpse/chain"
	"glimpse/replica"
	"glimpse/replica/replicatest"
	"glimpse/replica/stream"
)

func sealMany(w *replicatest.Writer, n int) {
	for range n {
		w.Seal()
	}
}

func TestReplicaFollowsTheWriter(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	w := replicatest.NewWriter(1)
	sealMany(w, 10)
	store := replicatest.NewStore(w, 5)
	p, _ := publish(t, srv.connect(), w, fast())
	tl, _ := tail(t, srv.connect(), w.ID, store, fast())
	converge(t, w, store)
	for range 300 {
		w.Step()
		p.Wake()
		p.Overlay(w.Overlay(), time.Now().Add(time.Minute), replica.NotWithdrawn)
	}
	converge(t, w, store)
	eventually(t, "the replica shows what is pre-confirmed", func() bool { return replicatest.Equal(store.Shown().Overlay, w.Overlay()) })
	isOneChain(t, events(t, srv.connect()))
	s := tl.Stats()
	if !s.Live || !s.Connected || s.Blocks != 0 || s.LastError != nil || s.Place != w.Head() {
		t.Errorf("stats of a replica that is in step: %+v", s)
	}
	if s := p.Stats(); !s.InCharge || s.Published != w.Head() || s.Events == 0 || s.PendingEvents == 0 {
		t.Errorf("stats of the writer: %+v", s)
	}
}

func TestLargeEventsAreCut(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	w := replicatest.NewWriter(1)
	store := replicatest.NewStore(w, 0)
	w.Padding = 3 << 20
	sealMany(w, 3)
	settings := fast()
	publish(t, srv.connect(), w, settings)
	tail(t, srv.connect(), w.ID, store, settings)
	converge(t, w, store)
	if n := theStream(t, srv.connect()).CachedInfo().State.Msgs; n < 3*6 {
		t.Errorf("three blocks of 3 MiB are %d messages, want at least 18", n)
	}
}

func TestTagsAndFactsArrive(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	p.writer.Finalize()
	p.publisher.Facts(&chain.Facts{Slots: []chain.SlotFact{{Address: chain.Address{1}, Value: chain.Value{2}}}})
	eventually(t, "tags arrive", func() bool { m := p.store.Shown().Marks; return m.Safe != nil && *m.Safe == p.writer.Head() })
	eventually(t, "facts arrive", func() bool { f := p.store.Facts(); return len(f) == 1 && f[0].Slots[0].Value == (chain.Value{2}) })
}

// What the writer's goroutines call returns at once while NATS is away, and what
// happened meanwhile is published afterwards.
func TestNATSAwayHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	p.stop()
	began := time.Now()
	for range 2000 {
		p.writer.Step()
		p.publisher.Wake()
		p.publisher.Overlay(p.writer.Overlay(), time.Now().Add(time.Minute), replica.NotWithdrawn)
		p.publisher.Facts(&chain.Facts{})
	}
	if d := time.Since(began); d > 20*time.Second {
		t.Errorf("2000 calls took %v while NATS was away", d)
	}
	eventually(t, "the writer says that it cannot publish", func() bool { s := p.publisher.Stats(); return !s.InCharge && s.LastError != nil })
	p.start()
	p.converge(t)
	isOneChain(t, events(t, p.connect()))
}

// A server that comes and goes in the middle of everything: no event is lost, no
// event is there twice.
func TestServerRestartsWhilePublishing(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("writer at %s: %+v; replica: %+v", p.writer.Head(), p.publisher.Stats(), p.tail.Stats())
		}
	})
	sealing := make(chan struct{})
	go func() {
		defer close(sealing)
		tick := time.NewTicker(200 * time.Microsecond)
		defer tick.Stop()
		for range 3000 {
			<-tick.C
			p.writer.Step()
			p.publisher.Wake()
		}
	}()
	for range 3 {
		before := p.store.Shown().Head
		eventually(t, "the replica goes on", func() bool { return p.store.Shown().Head != before || over(sealing) })
		p.stop()
		p.start()
	}
	<-sealing
	p.publisher.Wake()
	p.converge(t)
	isOneChain(t, events(t, p.connect()))
}

// The end of a branch that replicas were told to wait for may be gone before it is
// published.
func TestBranchIsReplacedWhileItIsPublished(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	sealMany(p.writer, 3)
	p.publisher.Wake()
	p.converge(t)
	for range 10 {
		from := p.writer.Head().Number
		p.writer.Reorganise(2, 300)
		p.publisher.Wake()
		eventually(t, "some of the branch is published", func() bool { return p.publisher.Stats().Published.Number > from })
		p.writer.Reorganise(3, 1)
		p.publisher.Wake()
		p.converge(t)
	}
	isOneChain(t, events(t, p.connect()))
}

func over(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestWriterGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		between func(*replicatest.Writer) // what happens while it is not publishing
		unwound bool                      // more than where it goes on is said
	}{
		{"nothing happened", func(*replicatest.Writer) {}, false},
		{"blocks were sealed", func(w *replicatest.Writer) { sealMany(w, 5) }, false},
		{"the chain was reorganised", func(w *replicatest.Writer) { w.Reorganise(3, 5) }, true},
		{"the last blocks were lost", func(w *replicatest.Writer) { w.Reorganise(3, 0) }, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			srv := startServer(t)
			w := replicatest.NewWriter(1)
			store := replicatest.NewStore(w, 0)
			tail(t, srv.connect(), w.ID, store, fast())
			sealMany(w, 10)
			_, first := publish(t, srv.connect(), w, fast())
			converge(t, w, store)
			if err := first.end(t); err != nil {
				t.Fatal(err)
			}
			before := w.Head()
			tt.between(w)
			publish(t, srv.connect(), w, fast())
			converge(t, w, store)
			all := events(t, srv.connect())
			isOneChain(t, all)
			for _, e := range all[1:] {
				if u, ok := e.Body.(*replica.Unwound); ok && (u.To != before) != tt.unwound {
					t.Errorf("it goes on from %s, was at %s", u.To, before)
				}
			}
		})
	}
}

func TestStreamDeleted(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	p.seal(t, 8)
	js, err := jetstream.New(p.connect())
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), "glimpse"); err != nil {
		t.Fatal(err)
	}
	p.seal(t, 3)
	p.writer.Reorganise(4, 6)
	p.publisher.Wake()
	p.converge(t)
}

// A replica that was away for longer than the stream keeps is told to get a
// snapshot, and which blocks it lacks; one whose head is still there goes on.
func TestTruncation(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	w := replicatest.NewWriter(1)
	sealMany(w, 100)
	behind, near := replicatest.NewStore(w, 20), replicatest.NewStore(w, 90)
	settings := fast()
	settings.Backlog = 100
	publish(t, srv.connect(), w, settings)
	whole := replicatest.NewStore(w, 0)
	tail(t, srv.connect(), w.ID, whole, settings)
	converge(t, w, whole)
	if err := theStream(t, srv.connect()).Purge(t.Context(), jetstream.WithPurgeKeep(50)); err != nil {
		t.Fatal(err)
	}
	tail(t, srv.connect(), w.ID, near, settings)
	converge(t, w, near)
	_, r := tail(t, srv.connect(), w.ID, behind, settings)
	var needed *stream.SnapshotNeeded
	if err := r.wait(t); !errors.As(err, &needed) {
		t.Fatalf("a replica that is too far behind ends with %v", err)
	}
	if needed.Have.Number != 20 || needed.Missing != (replica.Range{From: 21, To: 50}) {
		t.Errorf("it has %d and lacks %v, want 20 and 21 to 50", needed.Have.Number, needed.Missing)
	}
	if behind.Writes() != 0 {
		t.Error("it wrote to its store")
	}
}

func TestPrunedWriterStartsOver(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	w := replicatest.NewWriter(1)
	sealMany(w, 5)
	_, first := publish(t, srv.connect(), w, fast())
	store := replicatest.NewStore(w, 0)
	_, r := tail(t, srv.connect(), w.ID, store, fast())
	converge(t, w, store)
	if err := first.end(t); err != nil {
		t.Fatal(err)
	}
	sealMany(w, 50)
	w.Prune(40)
	publish(t, srv.connect(), w, fast())
	var needed *stream.SnapshotNeeded
	if err := r.wait(t); !errors.As(err, &needed) {
		t.Fatalf("a replica of the time before ends with %v", err)
	}
	joined := replicatest.NewStore(w, 45)
	tail(t, srv.connect(), w.ID, joined, fast())
	converge(t, w, joined)
}

func TestSecondWriterIsRefused(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	w := replicatest.NewWriter(1)
	sealMany(w, 3)
	first, _ := publish(t, srv.connect(), w, fast())
	eventually(t, "the first is in charge", func() bool { return first.Stats().InCharge })
	_, second := publish(t, srv.connect(), w, fast())
	if err := second.wait(t); !errors.Is(err, stream.ErrOtherWriter) {
		t.Errorf("the second ends with %v, want ErrOtherWriter", err)
	}
	sealMany(w, 1)
	first.Wake()
	eventually(t, "the first goes on", func() bool { return first.Stats().Published == w.Head() })
}

// A writer that was cut off while another took over must not write any more.
func TestReplacedWriterStops(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	w := replicatest.NewWriter(1)
	sealMany(w, 3)
	first, one := publish(t, srv.connect(), w, fast())
	eventually(t, "the first is in charge", func() bool { return first.Stats().InCharge && first.Stats().Published == w.Head() })
	forge(t, srv, w)
	sealMany(w, 1)
	first.Wake()
	if err := one.wait(t); !errors.Is(err, stream.ErrReplaced) {
		t.Errorf("the first ends with %v, want ErrReplaced", err)
	}
	isOneChain(t, events(t, srv.connect()))
}

// forge publishes the first event of another writer's epoch.
func forge(t *testing.T, srv *natsServer, w *replicatest.Writer) {
	t.Helper()
	nc := srv.connect()
	last := events(t, nc)
	e := &replica.Event{Chain: w.ID, Epoch: last[len(last)-1].Epoch + 1, Order: 1, Body: &replica.Unwound{To: w.Head(), Goal: w.Head()}}
	messages, err := replica.Cut(e, replica.DefaultPiece, replica.DefaultMaxEvent)
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "glimpse.blocks", messages[0]); err != nil {
		t.Fatal(err)
	}
}

func TestAnotherChainsStreamIsRefused(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	ours, theirs := replicatest.NewWriter(1), replicatest.NewWriter(2)
	p, _ := publish(t, srv.connect(), theirs, fast())
	eventually(t, "their writer is in charge", func() bool { return p.Stats().InCharge })
	_, writer := publish(t, srv.connect(), ours, fast())
	if err := writer.wait(t); !errors.Is(err, replica.ErrForeign) {
		t.Errorf("our writer ends with %v, want ErrForeign", err)
	}
	store := replicatest.NewStore(ours, 0)
	_, r := tail(t, srv.connect(), ours.ID, store, fast())
	if err := r.wait(t); !errors.Is(err, replica.ErrForeign) {
		t.Errorf("our replica ends with %v, want ErrForeign", err)
	}
	if id, err := stream.Describe(t.Context(), srv.connect(), fast()); err != nil || id != theirs.ID {
		t.Errorf("Describe = %v, %v, want %v", id, err, theirs.ID)
	}
}

func TestMismatchEndsTheTail(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	w := replicatest.NewWriter(1)
	sealMany(w, 5)
	publish(t, srv.connect(), w, fast())
	store := replicatest.NewStore(w, 3)
	store.Damage()
	_, r := tail(t, srv.connect(), w.ID, store, fast())
	if err := r.wait(t); !errors.Is(err, replica.ErrMismatch) {
		t.Errorf("a damaged replica ends with %v, want ErrMismatch", err)
	}
}

func TestAStoreThatFailsOnceIsTriedAgain(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	w := replicatest.NewWriter(1)
	sealMany(w, 10)
	store := replicatest.NewStore(w, 0)
	calls := 0
	store.Fail = func(call string) error {
		if calls++; call == "commit" && calls%3 == 0 {
			return replicatest.ErrBroken
		}
		return nil
	}
	publish(t, srv.connect(), w, fast())
	tail(t, srv.connect(), w.ID, store, fast())
	converge(t, w, store)
}

func TestReplicaWaitsForAStream(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	w := replicatest.NewWriter(1)
	store := replicatest.NewStore(w, 0)
	tl, _ := tail(t, srv.connect(), w.ID, store, fast())
	eventually(t, "it says what is missing", func() bool { return errors.Is(tl.Stats().LastError, stream.ErrNoStream) })
	sealMany(w, 2)
	publish(t, srv.connect(), w, fast())
	converge(t, w, store)
}

func TestSettings(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]stream.Settings{
		"a name with a dot":     {Name: "a.b"},
		"a name with a space":   {Name: "a b"},
		"too many servers":      {Replicas: 6},
		"less than nothing":     {MaxAge: -1},
		"messages of a byte":    {Piece: 1},
		"events below messages": {Piece: 2048, MaxEvent: 1024},
	} {
		t.Run(name, func(t *testing.T) {
			if err := s.Validate(); err == nil {
				t.Error("it is accepted")
			}
		})
	}
	if err := (stream.Settings{}).Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
}
