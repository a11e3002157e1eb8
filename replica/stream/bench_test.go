// SPDX-License-Identifier: Apache-2.0

package stream_test

import (
	"slices"
	"testing"
	"time"

	"glimpse/replica"
	"glimpse/replica/replicatest"
)

// BenchmarkPendingArrives measures how long after a writer's own publication of a
// flashblock a replica's readers see it, while blocks are sealed and synced.
func BenchmarkPendingArrives(b *testing.B) {
	srv := startServer(b)
	w := replicatest.NewWriter(1)
	store := replicatest.NewStore(w, 0)
	arrived := make(chan struct{}, 1) // holds one signal; nobody needs a second
	store.OnPublish = func(replicatest.Shown) {
		select {
		case arrived <- struct{}{}:
		default:
		}
	}
	p, _ := publish(b, srv.connect(), w, fast())
	tail(b, srv.connect(), w.ID, store, fast())
	w.Padding = 64 << 10
	sealMany(w, 1)
	p.Wake()
	converge(b, w, store)
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		if i%10 == 9 {
			w.Seal()
			p.Wake()
			converge(b, w, store)
		}
		w.Flashblock(i%10 == 0)
		o := w.Overlay()
		began := time.Now()
		p.Overlay(o, began.Add(time.Minute), replica.NotWithdrawn)
		for !replicatest.Equal(store.Shown().Overlay, o) {
			<-arrived
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(took[len(took)-1].Microseconds()), "max-µs")
}

// BenchmarkCatchUp measures blocks of 2 KiB that go through the stream, from the
// writer's store to the replica's.
func BenchmarkCatchUp(b *testing.B) {
	const blocks = 2000
	srv := startServer(b)
	settings := fast()
	settings.Backlog = blocks
	w := replicatest.NewWriter(1)
	w.Padding = 2 << 10
	store := replicatest.NewStore(w, 0)
	sealMany(w, blocks)
	for b.Loop() {
		p, _ := publish(b, srv.connect(), w, settings)
		tail(b, srv.connect(), w.ID, store, settings)
		converge(b, w, store)
		b.ReportMetric(float64(p.Stats().Bytes)/blocks, "B/block")
		b.ReportMetric(blocks/b.Elapsed().Seconds(), "blocks/s")
	}
}
