// SPDX-License-Identifier: Apache-2.0

package stream_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"glimpse/replica"
	"glimpse/replica/replicatest"
	"glimpse/replica/stream"
)

// A server that is there and says nothing, as one that is frozen or behind a line
// that was cut: neither end waits for it when it is to stop.
func TestASilentServerHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	between := startProxy(t, srv.server.ClientURL())
	connect := func() *nats.Conn {
		nc, err := stream.Link{URLs: "nats://" + between.listener.Addr().String()}.Connect(t.Name())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc.Conn
	}
	w := replicatest.NewWriter(1)
	store := replicatest.NewStore(w, 0)
	ours, theirs := connect(), connect()
	p, writer := publish(t, ours, w, stream.Settings{})
	tl, reader := tail(t, theirs, w.ID, store, stream.Settings{})
	sealMany(w, 2)
	p.Wake()
	converge(t, w, store)
	between.deaf.Store(true)
	w.Seal()
	p.Wake()
	// By then heartbeats are missing, and both ask what has become of the stream.
	eventually(t, "the replica hears nothing", func() bool { return time.Since(tl.Stats().Answered) > 2500*time.Millisecond })
	began := time.Now()
	for _, part := range []*running{reader, writer} {
		if err := part.end(t); err != nil {
			t.Error(err)
		}
	}
	theirs.Close()
	ours.Close()
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("stopping took %v", took)
	}
}

// What runs for months must not keep something of every message. It is not parallel,
// because it counts the goroutines of the whole process.
func TestMessagesLeaveNothingBehind(t *testing.T) {
	p := startPair(t)
	before := runtime.NumGoroutine()
	for range 200 {
		p.seal(t, 1)
	}
	if now := runtime.NumGoroutine(); now > before+20 {
		t.Errorf("%d goroutines after 200 blocks, %d before", now, before)
	}
}

// After NATS was away, a replica does not take itself to be in step before the writer
// has said where it is: what the stream has by then may be old.
func TestNobodyIsInStepByGuessing(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	for range 3 {
		p.publisher.Overlay(&replica.Overlay{Parent: p.writer.Head()}, time.Now().Add(time.Minute), replica.NotWithdrawn)
		eventually(t, "the writer is heard of", func() bool { return p.tail.Stats().HeardHere })
		p.stop()
		sealMany(p.writer, 200)
		p.publisher.Overlay(&replica.Overlay{Parent: p.writer.Head()}, time.Now().Add(time.Minute), replica.NotWithdrawn)
		away := time.Now()
		p.publisher.Wake()
		eventually(t, "the stream is lost", func() bool { return !p.tail.Stats().Connected })
		p.start()
		for deadline := time.Now().Add(patience); ; {
			s := p.tail.Stats()
			if s.Place == p.writer.Head() && s.HeardHere && s.Blocks == 0 {
				break
			}
			if s.HeardHere && s.Heard.After(away) && s.Behind < time.Since(away)/2 {
				t.Fatalf("at %s it has heard of the writer, which is at %s, and says that it is %d blocks and %v behind", s.Place, p.writer.Head(), s.Blocks, s.Behind)
			}
			if time.Now().After(deadline) {
				t.Fatalf("it does not come back: %+v", s)
			}
		}
	}
}
