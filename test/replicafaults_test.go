// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"glimpse/replica/snapshot"
)

// TestReplicaFaults lets everything go wrong that can, one after the other, while the
// replicas are read in turn: no read goes back or is wrong, who says that it is ready
// is, who says that it is not has a reason, and after each fault all replicas have
// what the writer has.
//
// With GLIMPSE_REPLICA_FAULTS, as make e2e-replica sets it, the NATS servers are
// processes and there are GLIMPSE_REPLICA_READS reads at least.
func TestReplicaFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	seed := rand.Uint64()
	t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
		w := newReplicaWorld(t)
		random := rand.New(rand.NewPCG(seed, 3))
		w.converged(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var busy sync.WaitGroup
		var sent, reads int
		busy.Go(func() { sent = w.write(ctx, t) })
		for range 4 {
			busy.Go(func() { w.read(ctx, t) })
		}
		busy.Go(func() { w.watchReadiness(ctx, t) })
		least := number(t, "GLIMPSE_REPLICA_READS", 2000)
		faults := w.faults(random)
		for _, fault := range faults {
			ok := t.Run(fault.name, func(t *testing.T) {
				seen := w.observe()
				fault.do(t)
				w.converged(t)
				within(t, 3*time.Minute, "enough reads", func() bool { return seen.enough(least / len(faults)) })
				w.confirm(t, seen)
				seen.judge(t, fault.must, fault.may...)
				reads += seen.reads
			})
			if !ok {
				break // what follows would tell of this one
			}
		}
		cancel()
		busy.Wait()
		t.Logf("%d transactions, %d reads", sent, reads)
		if reads < least && !t.Failed() {
			t.Errorf("%d reads, want %d", reads, least)
		}
	})
}

// A replicaFault is what goes wrong, the reason that a replica must have given for not being
// ready meanwhile, if any, and those that it may have given.
type replicaFault struct {
	name string
	do   func(*testing.T)
	must string
	may  []string
}

func (w *replicaWorld) faults(random *rand.Rand) []replicaFault {
	lost := []string{"catching-up", "disconnected", "writer-silent"}
	// An election may take longer than the stream keeps here, and what a replica had
	// not read by then it needs a snapshot for.
	elected := append(slices.Clip(lost), "rebuilding")
	restarted := []string{"starting", "catching-up", "writer-silent"}
	return []replicaFault{
		{name: "nothing", do: func(*testing.T) {}},
		{name: "the leader of the stream is killed", do: w.killLeader, may: elected},
		{name: "each server is killed and restarted", do: w.killEachServer, may: elected},
		{name: "a replica is killed while it applies", do: func(t *testing.T) { w.killReplica(t, random) }, may: restarted},
		{name: "the writer is killed while it publishes", do: func(t *testing.T) { w.killWriter(t, random) }, may: lost},
		{name: "a replica is cut off for longer than the stream keeps", do: w.cutOff, must: "disconnected", may: elected},
		{name: "the stream is deleted", do: w.deleteStream, may: lost},
		{name: "a chunk of a snapshot is damaged", do: w.damageSnapshot},
		{name: "another chain comes along", do: w.otherChain, may: append(restarted, "draining")},
	}
}

func (w *replicaWorld) killLeader(t *testing.T) {
	leader, err := w.cluster.StreamLeader(t.Context(), w.js, "glimpse")
	if err != nil {
		t.Fatal(err)
	}
	w.kill(t, leader)
	began := time.Now()
	if _, err := w.cluster.StreamLeader(t.Context(), w.js, "glimpse"); err != nil {
		t.Fatal(err)
	}
	elected := time.Since(began)
	w.converged(t)
	t.Logf("the servers elected another leader within %v, and all were in step %v later", elected.Round(10*time.Millisecond), (time.Since(began) - elected).Round(10*time.Millisecond))
	w.restart(t, leader)
}

func (w *replicaWorld) killEachServer(t *testing.T) {
	for i := range w.cluster.Len() {
		w.kill(t, i)
		pause(t, 500*time.Millisecond)
		w.restart(t, i)
	}
}

func (w *replicaWorld) kill(t *testing.T, i int) {
	t.Helper()
	if err := w.cluster.Kill(i); err != nil {
		t.Fatal(err)
	}
}

func (w *replicaWorld) restart(t *testing.T, i int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := w.cluster.Restart(ctx, i); err != nil {
		t.Fatal(err)
	}
	if err := w.cluster.Ready(ctx); err != nil {
		t.Fatal(err)
	}
}

func (w *replicaWorld) killReplica(t *testing.T, random *rand.Rand) {
	for range 3 {
		pause(t, time.Duration(random.IntN(300))*time.Millisecond)
		w.replicas[0].Load().kill(t)
		w.startReplica(0)
	}
}

func (w *replicaWorld) killWriter(t *testing.T, random *rand.Rand) {
	for range 3 {
		pause(t, time.Duration(random.IntN(600))*time.Millisecond)
		w.writer.Load().kill(t)
		w.startWriter()
	}
}

// cutOff cuts the lines of the last replica until the stream has forgotten what it
// needs.
func (w *replicaWorld) cutOff(t *testing.T) {
	last := w.replicas[len(w.replicas)-1].Load()
	rebuilds := metric(t, last, "glimpse_replica_rebuilds_total")
	began := time.Now()
	for _, l := range w.lines {
		l.cut.Store(true)
	}
	within(t, 3*worldMaxLag, "to be unready", func() bool { return last.readiness(t, "").status != http.StatusOK })
	last.unready(t, "", "disconnected")
	within(t, time.Minute, "the stream to forget", func() bool {
		s, err := w.js.Stream(t.Context(), "glimpse")
		return err == nil && s.CachedInfo().State.FirstTime.After(began.Add(time.Second))
	})
	if answer, err := rpc(t.Context(), last.url(), nil, "eth_getStorageAt", w.cell, "0x0", "latest"); err != nil {
		t.Errorf("a replica that is cut off answers %v, %v", answer, err)
	}
	for _, l := range w.lines {
		l.cut.Store(false)
	}
	w.converged(t)
	if now := metric(t, last, "glimpse_replica_rebuilds_total"); now != rebuilds+1 {
		t.Errorf("it was built anew %v times, want once", now-rebuilds)
	}
}

func (w *replicaWorld) deleteStream(t *testing.T) {
	if err := w.js.DeleteStream(t.Context(), "glimpse"); err != nil {
		t.Fatal(err)
	}
}

// damageSnapshot replaces the chunks of the newest snapshot, and lets a replica join.
func (w *replicaWorld) damageSnapshot(t *testing.T) {
	store, err := snapshot.OpenStore(t.Context(), w.js, "glimpse", snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	chunks, err := snapshot.OpenBucket(t.Context(), w.js, "glimpse-chunks")
	if err != nil {
		t.Fatal(err)
	}
	names, err := store.Names(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	damaged := 0
	for _, name := range names {
		m, err := store.Manifest(t.Context(), name)
		if err != nil {
			continue // it was dropped meanwhile
		}
		for _, f := range m.Files {
			if !strings.HasSuffix(f.Name, ".sst") {
				continue
			}
			c := f.Chunks[0]
			if err := chunks.Put(t.Context(), c.Sum.String(), make([]byte, c.Size)); err != nil {
				t.Fatal(err)
			}
			damaged++
		}
	}
	if damaged == 0 {
		t.Fatal("nothing was damaged")
	}
	fresh := launch(t, "replica", "--nats", w.cluster.URL(), "--datadir", filepath.Join(t.TempDir(), "fresh"), "--http.port", "0", "--replica.max-lag", worldMaxLag.String())
	fresh.await(t, fresh.observable)
	fresh.unready(t, "", "rebuilding")
	within(t, time.Minute, "a new replica to be ready", func() bool { return fresh.readiness(t, "").status == http.StatusOK })
	if a, b := slotAt(t, fresh.url(), w.cell, "0x5"), slotAt(t, w.writer.Load().url(), w.cell, "0x5"); a != b {
		t.Errorf("the new replica says %d at block 5, the writer %d", a, b)
	}
	t.Logf("%d chunks were damaged, the writer sent %v again", damaged, metric(t, w.writer.Load(), "glimpse_snapshots_damaged_chunks_total"))
}

// otherChain starts a writer of another chain on the same stream, which is refused,
// and on one of its own, which a replica of the first is refused by.
func (w *replicaWorld) otherChain(t *testing.T) {
	genesis := otherGenesis(t)
	args := []string{"--genesis", genesis, "--publish", w.cluster.URL(), "--http.port", "0", "--dev.feed-port", "0"}
	refusal := regexp.MustCompile(`another chain's stream.*chain 4242|another chain's stream.*chain 31337`)
	if out, code := run(t, append([]string{"dev"}, args...)...); code == 0 || !refusal.MatchString(out) {
		t.Errorf("a writer of another chain on this stream: exit code %d\n%s", code, out)
	}
	serve(t, append([]string{"dev", "--nats.stream", "other"}, args...)...)
	w.replicas[1].Load().stopNow(t)
	out, code := run(t, "replica", "--nats", w.cluster.URL(), "--nats.stream", "other", "--datadir", filepath.Join(w.dir, "1"), "--http.port", "0")
	if code == 0 || !refusal.MatchString(out) {
		t.Errorf("a replica on another chain's stream: exit code %d\n%s", code, out)
	}
	w.startReplica(1)
}

// metric returns the value of a metric without labels.
func metric(t *testing.T, s *server, name string) float64 {
	t.Helper()
	text, err := get(t.Context(), "http://"+s.ops+"/metrics")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("there is no metric %s", name)
	}
	var value float64
	if _, err := fmt.Sscan(m[1], &value); err != nil {
		t.Fatal(err)
	}
	return value
}
