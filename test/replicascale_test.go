// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	generator "glimpse/bench/load"
)

// TestReplicaScale measures how much three replicas answer beside one, on the cores
// that there are, and what a block costs a replica beside its writer. It prints and
// does not judge. GLIMPSE_REPLICA_SECONDS is how long each is measured; make
// replica-scale sets it.
func TestReplicaScale(t *testing.T) {
	lasting := time.Duration(number(t, "GLIMPSE_REPLICA_SECONDS", 0)) * time.Second
	if lasting == 0 {
		lasting = 200 * time.Millisecond
	}
	w := startWriter(t, "--datadir", filepath.Join(t.TempDir(), "writer"), "--dev.block-time", "200ms", "--dev.flashblock-time", "40ms")
	var replicas []*server
	for i := range 3 {
		replicas = append(replicas, startReplica(t, w.nats, filepath.Join(t.TempDir(), strconv.Itoa(i))))
	}
	for _, r := range replicas {
		r.ready(t, "")
	}
	blockCost(t, w, replicas, 4*lasting)

	pool := new(generator.Pool)
	for slot := range 64 {
		pool.Add(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"eth_getStorageAt","params":["0x5fbdb2315678afecb367f032d93f642f64180aa3","%#x","latest"]}`, slot))
	}
	for _, count := range []int{1, 3} {
		results := make([]*generator.Result, count)
		var busy sync.WaitGroup
		for i := range count {
			busy.Go(func() {
				result, err := generator.Run(t.Context(), replicas[i].addr, pool, generator.Options{
					Connections: 16, Warmup: lasting / 5, Duration: lasting, Seed: uint64(i), Core: -1,
					ServerCPU: func() (time.Duration, error) { return processorTime(replicas[i].cmd.Process.Pid) },
				})
				if err != nil {
					t.Error(err)
					return
				}
				results[i] = result
			})
		}
		busy.Wait()
		if t.Failed() {
			return
		}
		var answers, own, servers float64
		for _, r := range results {
			answers += r.Throughput()
			own += r.OwnCPU.Seconds() / r.Elapsed.Seconds()
			servers += r.ServerCPU.Seconds() / r.Elapsed.Seconds()
			if r.Failures > 0 {
				t.Errorf("%d answers were errors: %s", r.Failures, r.FirstFailure)
			}
		}
		t.Logf("%d replicas on %d cores: %.0f reads/s with %.2f cores for the replicas and %.2f for the generator: %.0f reads/s for each core of a replica",
			count, runtime.NumCPU(), answers, servers, own, answers/servers)
	}
}

// blockCost lets the writer seal blocks of some fifty transactions, and prints what
// processor time it and its replicas took for them.
func blockCost(t *testing.T, w *server, replicas []*server, lasting time.Duration) {
	t.Helper()
	nodes := append([]*server{w}, replicas...)
	before := make([]time.Duration, len(nodes))
	batches := signMany(t, w, max(int(lasting/(200*time.Millisecond)), 2))
	pause(t, time.Second)
	first := height(t, w.url())
	for i, n := range nodes {
		var err error
		if before[i], err = processorTime(n.cmd.Process.Pid); err != nil {
			t.Skipf("processor times cannot be read here: %v", err)
		}
	}
	for _, b := range batches {
		if _, err := post(t.Context(), w.url(), b); err != nil {
			t.Fatal(err)
		}
		pause(t, 200*time.Millisecond)
	}
	blocks := height(t, w.url()) - first
	var took []string
	for i, n := range nodes {
		now, err := processorTime(n.cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		took = append(took, ((now - before[i]) / time.Duration(max(blocks, 1))).Round(10*time.Microsecond).String())
	}
	t.Logf("processor time for each of %d blocks of %d transactions with 5 flashblocks: writer with its NATS server %s, replicas %s",
		blocks, 50*len(batches)/int(max(blocks, 1)), took[0], strings.Join(took[1:], ", "))
	t.Logf("a block is %.0f bytes in the stream, and %.0f of pre-confirmed state",
		metricOf(t, w, `glimpse_publish_bytes_total{kind="blocks"}`)/metric(t, w, "glimpse_publish_block"),
		metricOf(t, w, `glimpse_publish_bytes_total{kind="pending"}`)/metric(t, w, "glimpse_publish_block"))
}

// metricOf is metric for one with labels.
func metricOf(t *testing.T, s *server, name string) float64 {
	t.Helper()
	return metric(t, s, regexp.QuoteMeta(name))
}

// processorTime returns how much of the processors a process has used.
func processorTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond, err // of a hundred in a second
}

// TestReplicaJoins lets a replica join a store of GLIMPSE_REPLICA_SLOTS slots, and
// prints what it took. make replica-scale has five million.
func TestReplicaJoins(t *testing.T) {
	slots := number(t, "GLIMPSE_REPLICA_SLOTS", 20_000)
	dir := t.TempDir()
	head := fillStore(t, filepath.Join(dir, "writer"), slots)
	began := time.Now()
	w := serve(t, "serve", "--datadir", filepath.Join(dir, "writer"), "--http.port", "0", "--publish", "embedded", "--nats.port", "0")
	within(t, 10*time.Minute, "a snapshot", func() bool { return metricOf(t, w, `glimpse_snapshots_total{outcome="made"}`) > 0 })
	t.Logf("%d slots in %d blocks: snapshot of %.1f MB after %v", slots, head, metric(t, w, "glimpse_snapshot_bytes")/1e6, time.Since(began).Round(time.Millisecond))
	began = time.Now()
	r := startReplica(t, w.nats, filepath.Join(dir, "replica"))
	r.ready(t, "")
	t.Logf("a new replica is ready after %v", time.Since(began).Round(time.Millisecond))
	for i := range 100 {
		addr, slot := slotOf(i * (slots / 100))
		if got, want := string(call(t, r.url(), "eth_getStorageAt", addr, slot, "latest")), string(call(t, w.url(), "eth_getStorageAt", addr, slot, "latest")); got != want {
			t.Errorf("slot %s of %s is %s, the writer's %s", slot, addr, got, want)
		}
	}
}
