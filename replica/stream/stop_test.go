// SPDX-License-Identifier: Apache-2.0

package stream_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

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
	tl, replica := tail(t, theirs, w.ID, store, stream.Settings{})
	sealMany(w, 2)
	p.Wake()
	converge(t, w, store)
	between.deaf.Store(true)
	w.Seal()
	p.Wake()
	// By then heartbeats are missing, and both ask what has become of the stream.
	eventually(t, "the replica hears nothing", func() bool { return time.Since(tl.Stats().Answered) > 2500*time.Millisecond })
	began := time.Now()
	for _, part := range []*running{replica, writer} {
		if err := part.end(t); err != nil {
			t.Error(err)
		}
	}
	theirs.Close()
	ours.Close()
	if took := time.Since(began); took > time.Second {
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
