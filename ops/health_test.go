// SPDX-License-Identifier: Apache-2.0

package ops_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"glimpse/chain"
	"glimpse/ops"
)

// A world is a node as ops sees it.
type world struct {
	heads   *ops.Heads
	health  *ops.Health
	metrics *ops.Metrics
}

func newWorld(o ops.HealthOptions) *world {
	w := &world{heads: &ops.Heads{
		Latest: chain.Ref{Number: 100, Hash: chain.Hash{0xab}},
		Sealed: time.Now().Add(-3 * time.Second),
		Oldest: 7,
	}}
	o.Heads = func() (ops.Heads, bool) {
		if w.heads == nil {
			return ops.Heads{}, false
		}
		return *w.heads, true
	}
	w.health = ops.NewHealth(o)
	w.metrics = ops.NewMetrics(ops.MetricsOptions{Version: "1.2.3", Health: w.health})
	return w
}

// pass lets time go by; nothing sleeps in a bubble.
func pass(d time.Duration) { <-time.After(d) }

func (w *world) expect(t *testing.T, when string, q ops.Query, want ...ops.Reason) {
	t.Helper()
	var got []ops.Reason
	for _, f := range ops.Judge(w.health.Facts(), q, time.Now()) {
		got = append(got, f.Reason)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", when, got, want)
	}
}

// An outcome is a flashblock outcome, as pending.Kind is.
type outcome string

func (o outcome) String() string { return string(o) }

func TestReadinessFollowsWhatArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(ops.HealthOptions{BlockLimit: 10 * time.Second})
		pass(10 * time.Second)
		w.expect(t, "at the limit after the start", ops.Query{})
		pass(time.Millisecond)
		w.expect(t, "past the limit without a block", ops.Query{}, ops.NoBlocks)
		w.metrics.Block()
		w.expect(t, "after a block", ops.Query{})
		pass(10*time.Second + 1)
		w.expect(t, "past the limit after a block", ops.Query{}, ops.NoBlocks)
	})
}

func TestReadinessFollowsTheFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(ops.HealthOptions{FeedLimit: time.Second})
		pass(time.Second + 1)
		w.expect(t, "a feed that never said anything", ops.Query{}, ops.FeedSilent)
		w.metrics.FeedMessage()
		w.expect(t, "after a message", ops.Query{})

		pending := ops.Query{Pending: true, MaxAge: 500 * time.Millisecond}
		w.expect(t, "a message that was not applied", pending, ops.NoPending)
		w.heads.Pending = &ops.Preconfirmed{Number: 101}
		w.metrics.Flashblock(outcome("applied"))
		w.expect(t, "a message that was applied", pending)
		pass(501 * time.Millisecond)
		w.metrics.FeedMessage()
		w.metrics.Flashblock(outcome("ignored"))
		w.expect(t, "a later one that was not", pending, ops.PendingTooOld)
	})
}

func TestStoreErrorClearsWhenReadsSucceedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(ops.HealthOptions{})
		w.metrics.StoreReadFailed(errors.New("disk on fire"))
		pass(9 * time.Second)
		w.metrics.StoreReadFailed(errors.New(strings.Repeat("long ", 1000)))
		pass(9 * time.Second)
		w.expect(t, "nine seconds after the second", ops.Query{}, ops.StoreError)
		if n := len(w.health.Facts().StoreFailure.Text); n > 400 {
			t.Errorf("an error of 5000 bytes is kept with %d", n)
		}
		pass(time.Second)
		w.expect(t, "ten seconds after the second", ops.Query{})
	})
}

func TestDrainingIsForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(ops.HealthOptions{})
		w.health.Drain()
		pass(time.Hour)
		w.metrics.Block()
		w.expect(t, "an hour later", ops.Query{}, ops.Draining)
	})
}

func TestStartingUntilThereAreHeads(t *testing.T) {
	w := newWorld(ops.HealthOptions{})
	heads := w.heads
	w.heads = nil
	w.expect(t, "without heads", ops.Query{}, ops.Starting)
	w.heads = heads
	w.expect(t, "with heads", ops.Query{})
	never := ops.NewHealth(ops.HealthOptions{}).Facts()
	if v := ops.Judge(never, ops.Query{}, time.Now()); len(v) != 1 || v[0].Reason != ops.Starting {
		t.Errorf("a node that nobody told where its heads are: got %+v, want starting", v)
	}
}

// Looking for the heads is itself a read of the store.
func TestHeadsThatCannotBeReadAreAStoreError(t *testing.T) {
	w := new(world)
	w.health = ops.NewHealth(ops.HealthOptions{Heads: func() (ops.Heads, bool) {
		w.metrics.StoreReadFailed(errors.New("disk"))
		return ops.Heads{}, false
	}})
	w.metrics = ops.NewMetrics(ops.MetricsOptions{Health: w.health})
	w.expect(t, "at the first look", ops.Query{}, ops.Starting, ops.StoreError)
}
