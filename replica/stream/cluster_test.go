// SPDX-License-Identifier: Apache-2.0

package stream_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"glimpse/replica"
	"glimpse/replica/cluster"
	"glimpse/replica/replicatest"
	"glimpse/replica/stream"
)

// Three servers keep the stream, and its leader goes while events are published:
// nothing is lost, and nothing is there twice.
func TestClusterLosesItsLeader(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds to elect leaders")
	}
	t.Parallel()
	c, err := cluster.Start(t.Context(), cluster.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	connect := func() *nats.Conn {
		nc, err := nats.Connect(c.URL(), stream.ConnectOptions(t.Name())...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	settings := fast()
	settings.Replicas = 3
	w := replicatest.NewWriter(1)
	store := replicatest.NewStore(w, 0)
	p, _ := publish(t, connect(), w, settings)
	tl, _ := tail(t, connect(), w.ID, store, settings)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("writer at %s: %+v; replica: %+v", w.Head(), p.Stats(), tl.Stats())
		}
	})
	w.Seal()
	p.Wake()
	converge(t, w, store)
	stop := drive(w, p)
	js, err := jetstream.New(connect())
	if err != nil {
		t.Fatal(err)
	}
	leader, err := c.StreamLeader(t.Context(), js, "glimpse")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Kill(leader); err != nil {
		t.Fatal(err)
	}
	before := store.Shown().Head
	eventually(t, "the replica goes on without the leader", func() bool { return store.Shown().Head.Number > before.Number+3 })
	if err := c.Restart(t.Context(), leader); err != nil {
		t.Fatal(err)
	}
	stop()
	converge(t, w, store)
	isOneChain(t, events(t, connect()))
}

// drive lets the writer's chain grow until stop is called.
func drive(w *replicatest.Writer, p *stream.Publisher) (stop func()) {
	ending, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ending:
				p.Wake()
				return
			case <-tick.C:
				w.Step()
				p.Wake()
				p.Overlay(w.Overlay(), time.Now().Add(time.Second), replica.NotWithdrawn)
			}
		}
	}()
	return func() {
		close(ending)
		<-ended
	}
}
