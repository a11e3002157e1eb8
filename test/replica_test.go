// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// startWriter starts an embedded chain that publishes to a NATS server of its own.
func startWriter(t *testing.T, args ...string) *server {
	t.Helper()
	return startDev(t, append([]string{"--publish", "embedded", "--nats.port", "0"}, args...)...)
}

// startReplica starts a replica.
func startReplica(t *testing.T, nats, dir string, args ...string) *server {
	t.Helper()
	return serve(t, append([]string{"replica", "--nats", nats, "--datadir", dir, "--http.port", "0"}, args...)...)
}

// stamp names the snapshot that a node answers from.
func stamp(t testing.TB, url string) string {
	t.Helper()
	var status struct{ Snapshot string }
	mustDecode(t, call(t, url, "glimpse_status"), &status)
	return status.Snapshot
}

// sameStamp waits until nodes answer from the same snapshot, pending and all.
func sameStamp(t *testing.T, writer string, replicas ...*server) {
	t.Helper()
	for i, r := range replicas {
		eventually(t, fmt.Sprintf("replica %d to have what the writer has", i), func() bool { return stamp(t, r.url()) == stamp(t, writer) })
	}
}

// A writer with its own NATS server and two replicas, of which one joins late: after
// random load with reorganisations and broken promises, every slot and code at every
// block is the same on all, what is pre-confirmed too, and so are the digests. Blocks
// of ten flashblocks come as fast as the machine keeps up: GLIMPSE_REPLICA_BLOCKS is
// 1800 for an hour of blocks of two seconds.
func TestReplicas(t *testing.T) {
	blocks := uint64(number(t, "GLIMPSE_REPLICA_BLOCKS", 25))
	seed := rand.Uint64()
	t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
		dir := t.TempDir()
		w := startWriter(t, "--datadir", filepath.Join(dir, "writer"), "--dev.block-time", "50ms", "--dev.flashblock-time", "5ms", "--snapshot-every", "2s")
		replicas := []*server{startReplica(t, w.nats, filepath.Join(dir, "0"), "--writer", w.url())}
		l := newStorageLoad(t, seed, w.url())
		began := time.Now()
		for n := uint64(0); n < blocks; n = height(t, w.url()) {
			for range 1 + l.random.IntN(4) {
				l.step(t)
			}
			switch kind := l.random.IntN(40); {
			case kind == 0 && n > 4:
				call(t, w.url(), "dev_reorg", 1+l.random.IntN(3))
			case kind == 1:
				call(t, w.url(), "dev_dropFlashblocks", 1)
			}
			if n > blocks/2 && len(replicas) == 1 {
				replicas = append(replicas, startReplica(t, w.nats, filepath.Join(dir, "1")))
			}
			pause(t, time.Duration(l.random.IntN(25))*time.Millisecond)
		}
		t.Logf("%d blocks in %v", height(t, w.url()), time.Since(began).Round(time.Millisecond))
		for _, r := range replicas {
			r.ready(t, "")
		}
		t.Run("what is sent to a replica reaches the writer", func(t *testing.T) {
			from := l.wallets[0]
			cell := deployCell(t, replicas[0].url(), from)
			for _, r := range replicas {
				eventually(t, "the cell on pending", func() bool { return slotAt(t, r.url(), cell, "pending") == 42 })
			}
			if a := errorCode(t, replicas[1].url(), "eth_sendRawTransaction", "0x00"); a.Code != -32601 {
				t.Errorf("a replica without a writer answers %+v, want -32601", a)
			}
		})
		// While no block is sealed and no flashblock comes, all of pending is the same.
		call(t, w.url(), "dev_pauseSealing")
		sameStamp(t, w.url(), replicas...)
		last := height(t, w.url())
		compareAll(t, w, replicas, last)
		for i, r := range replicas {
			comparePending(t, r.url(), w.url(), l.scatters)
			t.Logf("replica %d: %s", i, call(t, r.url(), "glimpse_status"))
		}
		call(t, w.url(), "dev_resumeSealing")
		digests := stopAndDigest(t, dir, w, replicas)
		for i, d := range digests[1:] {
			if d != digests[0] {
				t.Errorf("replica %d has digest %s, the writer %s", i, d, digests[0])
			}
		}
	})
}

// compareAll compares every slot and code at every block, all replicas at the same
// time.
func compareAll(t *testing.T, w *server, replicas []*server, last uint64) {
	t.Helper()
	began := time.Now()
	var busy sync.WaitGroup
	for _, r := range replicas {
		busy.Go(func() { compareFollowed(t, r.url(), w.url(), 0, last) })
	}
	busy.Wait()
	t.Logf("compared within %v", time.Since(began).Round(time.Millisecond))
}

// comparePending compares the first slots of contracts on pending.
func comparePending(t *testing.T, replica, writer string, contracts []common.Address) {
	t.Helper()
	c := comparison{glimpse: replica, geth: writer}
	for _, addr := range contracts {
		calls := []rpcCall{{"2.0", 0, "eth_getCode", []any{addr, "pending"}}}
		for slot := range 64 {
			calls = append(calls, rpcCall{"2.0", slot + 1, "eth_getStorageAt", []any{addr, fmt.Sprintf("%#x", slot), "pending"}})
		}
		calls = append(calls, rpcCall{"2.0", 65, "eth_getBlockByNumber", []any{"pending", true}})
		if err := c.batch(t, calls); err != nil {
			t.Fatal(err)
		}
	}
	if c.compared.Load() == 0 {
		t.Error("nothing was compared")
	}
}

var headAndDigest = regexp.MustCompile(`(?m)^head +(\S+).*\n(?:.*\n)*content +([0-9a-f]{64})$`)

// stopAndDigest stops the writer, and the replicas when they have all of it, and
// returns the digests of all stores, the writer's first. Each is checked.
func stopAndDigest(t *testing.T, dir string, w *server, replicas []*server) (digests []string) {
	t.Helper()
	call(t, w.url(), "dev_pauseSealing")
	for _, r := range replicas {
		eventually(t, "the last block", func() bool { return hashOf(t, r.url(), height(t, r.url())) == hashOf(t, w.url(), height(t, w.url())) })
	}
	for _, r := range replicas {
		r.stopNow(t)
	}
	w.stopNow(t)
	stores := []string{filepath.Join(dir, "writer")}
	for i := range replicas {
		found, err := filepath.Glob(filepath.Join(dir, fmt.Sprint(i), "store-*"))
		if err != nil || len(found) != 1 {
			t.Fatalf("replica %d has stores %v, want one (%v)", i, found, err)
		}
		stores = append(stores, found[0])
	}
	for _, store := range stores {
		m := headAndDigest.FindStringSubmatch(mustRun(t, "verify", "--datadir", store))
		if m == nil {
			t.Fatalf("verify of %s prints no digest", store)
		}
		digests = append(digests, m[1]+" "+m[2])
	}
	return digests
}

// Replicas start before there is a writer, and without a stream say so and wait; one
// with the store of another chain is refused.
func TestReplicaOfAnotherChain(t *testing.T) {
	dir := t.TempDir()
	w := startWriter(t, "--dev.block-time", "200ms", "--dev.flashblock-time", "20ms")
	r := startReplica(t, w.nats, filepath.Join(dir, "r"))
	r.ready(t, "")
	r.stopNow(t)
	other := startWriter(t, "--genesis", otherGenesis(t), "--dev.block-time", "200ms", "--dev.flashblock-time", "20ms")
	out, code := run(t, "replica", "--nats", other.nats, "--datadir", filepath.Join(dir, "r"), "--http.port", "0")
	if code == 0 || !regexp.MustCompile(`another chain's stream.*chain 4242`).MatchString(out) {
		t.Errorf("exit code %d, want a refusal that names both chains:\n%s", code, out)
	}
}

// otherGenesis is the built-in one with another chain id.
func otherGenesis(t *testing.T) string {
	t.Helper()
	var g map[string]any
	mustDecode(t, json.RawMessage(mustRun(t, "genesis")), &g)
	g["config"].(map[string]any)["chainId"] = 4242
	text, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "genesis.json", text)
}

// A replica of a node that follows a chain: what the store does not know is read
// through from the writer, and without one it is an error and never zero.
func TestReplicaOfAFollower(t *testing.T) {
	seed := rand.Uint64()
	t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
		s := startDev(t, "--dev.block-time", "200ms", "--dev.flashblock-time", "20ms")
		l := newStorageLoad(t, seed, s.url())
		for range 5 { // what the follower does not see happen
			l.step(t)
		}
		eventually(t, "a first block", func() bool { return height(t, s.url()) > 1 })
		f := startFollow(t, "ws://"+s.ws, "--feed", "ws://"+s.feed(t)+"/ws", "--datadir", filepath.Join(t.TempDir(), "f"), "--publish", "embedded", "--nats.port", "0", "--forward")
		first := height(t, f.url())
		r := startReplica(t, f.nats, filepath.Join(t.TempDir(), "r"), "--writer", f.url())
		alone := startReplica(t, f.nats, filepath.Join(t.TempDir(), "alone"))
		for n := first; n < first+10; n = height(t, s.url()) {
			for range 1 + l.random.IntN(4) {
				l.step(t)
			}
			pause(t, time.Duration(l.random.IntN(100))*time.Millisecond)
		}
		last := height(t, s.url())
		eventually(t, "the replica to catch up", func() bool { return height(t, r.url()) >= last && height(t, alone.url()) >= last })
		r.ready(t, "")
		compareFollowed(t, r.url(), s.url(), first, last)
		if a := errorCode(t, alone.url(), "eth_getStorageAt", "0x00000000000000000000000000000000000000ee", "0x77", "latest"); a.Code != 4444 {
			t.Errorf("a replica that does not know a slot answers %+v, want 4444", a)
		}
	})
}

// There is something to see of a replica without a store, and nothing to connect to;
// how far its snapshot is, when there is one; and it stops at once.
func TestReplicaWithoutAStore(t *testing.T) {
	l := newLine(t, "nats://127.0.0.1:1") // nobody
	start := func(dir string) *server {
		port := freePort(t)
		s := launch(t, "replica", "--nats", l.url(), "--datadir", dir, "--http.port", port, "--replica.max-lag", "500ms")
		s.await(t, s.observable)
		s.addr = "127.0.0.1:" + port
		return s
	}
	r := start(filepath.Join(t.TempDir(), "r"))
	r.unready(t, "", "rebuilding")
	r.unready(t, "", "disconnected")
	if text, err := get(t.Context(), "http://"+r.ops+"/livez"); err != nil || !strings.Contains(text, "ok") {
		t.Errorf("/livez answers %q, %v", text, err)
	}
	if n := metric(t, r, "glimpse_replica_rebuilding"); n != 1 {
		t.Errorf("glimpse_replica_rebuilding is %v", n)
	}
	if _, err := rpc(t.Context(), r.url(), nil, "eth_blockNumber"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("JSON-RPC without a store: %v, want a refusal", err)
	}
	w := startWriter(t, "--datadir", filepath.Join(t.TempDir(), "w"), "--dev.block-time", "200ms", "--dev.flashblock-time", "20ms")
	newStorageLoad(t, 1, w.url())
	l.slow.Store(true)
	l.server.Store(strings.TrimPrefix(w.nats, "nats://"))
	eventually(t, "to tell how far the snapshot is", func() bool {
		text, err := get(t.Context(), "http://"+r.ops+"/readyz")
		return err == nil && regexp.MustCompile(`rebuilding.*of which \d+ of \d+ bytes are here`).MatchString(text)
	})
	if slices.Contains(r.readiness(t, "").reasons, "disconnected") {
		t.Error("who downloads says that it is disconnected")
	}
	began := time.Now()
	r.stopNow(t)
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("it took %v to stop in the middle of a download", took)
	}
	l.slow.Store(false)
	r = start(filepath.Join(t.TempDir(), "again"))
	r.ready(t, "")
	if a, b := hashOf(t, r.url(), 1), hashOf(t, w.url(), 1); a != b {
		t.Errorf("block 1 is %s, the writer's %s", a, b)
	}
}

// A NATS server that is frozen, and closes no connection, keeps neither a replica nor
// a writer from stopping in the time that it has.
func TestStoppingBesideAFrozenServer(t *testing.T) {
	frozen := startWriter(t, "--dev.block-time", "200ms", "--dev.flashblock-time", "20ms")
	dir := t.TempDir()
	nodes := []*server{
		startReplica(t, frozen.nats, filepath.Join(dir, "r"), "--shutdown-timeout", "4s"),
		startDev(t, "--publish", frozen.nats, "--nats.stream", "other", "--snapshot-every", "100ms", "--shutdown-timeout", "4s",
			"--datadir", filepath.Join(dir, "w"), "--dev.block-time", "200ms", "--dev.flashblock-time", "20ms"),
	}
	nodes[0].ready(t, "")
	eventually(t, "a snapshot", func() bool { return metricOf(t, nodes[1], `glimpse_snapshots_total{outcome="made"}`) > 0 })
	signal := func(s syscall.Signal) {
		if err := frozen.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	defer signal(syscall.SIGCONT)
	nodes[0].unready(t, "", "disconnected") // by then it has asked, and waits for an answer
	for i, n := range nodes {
		began := time.Now()
		n.stopNow(t)
		if took := time.Since(began); took > 8*time.Second {
			t.Errorf("node %d took %v to stop", i, took)
		}
	}
}

// freePort returns a port that nobody had a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}
