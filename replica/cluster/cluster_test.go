// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"glimpse/replica/cluster"
)

// What was acknowledged before a server died is there while it is dead and after
// it is back, whichever it was. The leader is the first to die.
func TestStreamOutlivesEachServer(t *testing.T) {
	t.Run("in this process", func(t *testing.T) { outlive(t, "", 3) })
	t.Run("as processes", func(t *testing.T) {
		if testing.Short() {
			t.Skip("takes a build of nats-server")
		}
		binary, err := cluster.Build(t.Context(), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		outlive(t, binary, 1)
	})
}

func outlive(t *testing.T, binary string, rounds int) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := cluster.Start(ctx, cluster.Options{Dir: t.TempDir(), Binary: binary})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	conn, err := nats.Connect(c.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, Replicas: c.Len()}); err != nil {
		t.Fatal(err)
	}
	for round := range rounds {
		leader, err := c.StreamLeader(ctx, js, "S")
		if err != nil {
			t.Fatal(err)
		}
		victim := round
		if round == 0 {
			victim = leader
		}
		publish(ctx, t, js, fmt.Sprint("before ", round))
		if err := c.Kill(victim); err != nil {
			t.Fatal(err)
		}
		next, err := c.StreamLeader(ctx, js, "S")
		if err != nil {
			t.Fatal(err)
		}
		if next == victim {
			t.Errorf("leader after %d was killed: got the same", victim)
		}
		publish(ctx, t, js, fmt.Sprint("after ", round))
		if err := c.Restart(ctx, victim); err != nil {
			t.Fatal(err)
		}
	}
	s, err := js.Stream(ctx, "S")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.CachedInfo().State.Msgs, uint64(2*rounds); got != want {
		t.Errorf("messages: got %d, want %d", got, want)
	}
}

// publish tries again until a server takes the message, once.
func publish(ctx context.Context, t *testing.T, js jetstream.JetStream, id string) {
	t.Helper()
	for {
		try, cancel := context.WithTimeout(ctx, time.Second)
		_, err := js.Publish(try, "s", []byte(id), jetstream.WithMsgID(id))
		cancel()
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("publish %s: %v", id, err)
		}
	}
}
