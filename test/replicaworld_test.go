// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"glimpse/replica/cluster"
)

// A replicaWorld is a cluster of NATS servers, a writer and three replicas, of which
// the last has a line to the servers that can be cut.
type replicaWorld struct {
	t        *testing.T // what is started lives as long as this
	dir      string
	cluster  *cluster.Cluster
	js       jetstream.JetStream
	writer   atomic.Pointer[server]
	replicas [3]atomic.Pointer[server]
	lines    []*line
	cell     common.Address
	from     *wallet

	highest atomic.Uint64                // value that was sent to the cell
	seen    atomic.Pointer[observations] // of what goes wrong now
}

const (
	worldMaxLag = 3 * time.Second
	worldKeeps  = 6 * time.Second // of the stream
)

func newReplicaWorld(t *testing.T) *replicaWorld {
	t.Helper()
	w := &replicaWorld{t: t, dir: t.TempDir()}
	w.observe()
	options := cluster.Options{Dir: filepath.Join(w.dir, "nats")}
	if os.Getenv("GLIMPSE_REPLICA_FAULTS") != "" { // processes, which can be killed as machines are
		binary, err := cluster.Build(t.Context(), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		options.Binary = binary
	}
	var err error
	if w.cluster, err = cluster.Start(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	conn, err := nats.Connect(w.cluster.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if w.js, err = jetstream.New(conn); err != nil {
		t.Fatal(err)
	}
	for i := range w.cluster.Len() {
		w.lines = append(w.lines, newLine(t, w.cluster.ServerURL(i)))
	}
	w.startWriter()
	w.from = newWallet(t, 0)
	w.cell = deployCell(t, w.writer.Load().url(), w.from)
	for i := range w.replicas {
		w.startReplica(i)
	}
	return w
}

func (w *replicaWorld) startWriter() {
	w.t.Helper()
	w.writer.Store(startDev(w.t, "--publish", w.cluster.URL(), "--nats.copies", "3", "--nats.max-age", worldKeeps.String(), "--snapshot-every", "2s",
		"--datadir", filepath.Join(w.dir, "writer"), "--dev.block-time", "200ms", "--dev.flashblock-time", "40ms"))
}

func (w *replicaWorld) natsOf(replica int) string {
	if replica < len(w.replicas)-1 {
		return w.cluster.URL()
	}
	var urls []string
	for _, l := range w.lines {
		urls = append(urls, l.url())
	}
	return strings.Join(urls, ",")
}

func (w *replicaWorld) startReplica(i int) {
	w.t.Helper()
	w.replicas[i].Store(startReplica(w.t, w.natsOf(i), filepath.Join(w.dir, fmt.Sprint(i)), "--replica.max-lag", worldMaxLag.String()))
}

// converged waits until all replicas are ready and have what the writer has now.
func (w *replicaWorld) converged(t *testing.T) {
	t.Helper()
	began := time.Now()
	n := height(t, w.writer.Load().url())
	within(t, time.Minute, "the writer to go on", func() bool { return height(t, w.writer.Load().url()) > n })
	n = height(t, w.writer.Load().url())
	for i := range w.replicas {
		r := w.replicas[i].Load()
		within(t, time.Minute, fmt.Sprintf("replica %d to be ready at block %d", i, n), func() bool {
			return height(t, r.url()) >= n && r.readiness(t, "").status == http.StatusOK
		})
	}
	t.Logf("converged at block %d within %v", n, time.Since(began).Round(10*time.Millisecond))
}

// within is eventually with a time of its own.
func within(t *testing.T, limit time.Duration, what string, check func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !check(); pause(t, 20*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s", limit, what)
		}
	}
}

// write sends the cell ever higher values until ctx ends. What a writer loses that is
// killed was never sealed, so sealed values never go down.
func (w *replicaWorld) write(ctx context.Context, t *testing.T) (sent int) {
	for value := uint64(100); ctx.Err() == nil; value++ {
		w.highest.Store(value)
		tx := w.from.sign(t, &w.cell, word(value))
		raw, err := tx.MarshalBinary()
		if err != nil {
			t.Error(err)
			return sent
		}
		url := w.writer.Load().url()
		if _, err := rpc(ctx, url, nil, "eth_sendRawTransactionSync", hexutil.Bytes(raw)); err == nil {
			sent++
			continue
		}
		for ctx.Err() == nil { // it was killed: what is its next nonce?
			answer, err := rpc(ctx, w.writer.Load().url(), nil, "eth_getTransactionCount", w.from.addr, "pending")
			var nonce hexutil.Uint64
			if err == nil && json.Unmarshal(answer.Result, &nonce) == nil {
				w.from.nonce = uint64(nonce)
				break
			}
			pause(t, 50*time.Millisecond)
		}
	}
	return sent
}

// An rpcResponse is an answer with the snapshot that it is from.
type rpcResponse struct {
	Result   json.RawMessage
	Error    json.RawMessage
	snapshot string
}

// rpc makes a call within two seconds; an error of the node is an error.
func rpc(ctx context.Context, url string, header map[string]string, method string, params ...any) (answer rpcResponse, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	body, err := json.Marshal(rpcCall{"2.0", 1, method, params})
	if err != nil {
		return answer, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(string(body)))
	if err != nil {
		return answer, err
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	if err == nil && answer.Error != nil {
		err = errors.New(string(answer.Error))
	}
	answer.snapshot = resp.Header.Get("Glimpse-Snapshot")
	return answer, err
}

// A line is a way to a server that can be cut: then nothing goes through, and nobody
// is told.
type line struct {
	listener net.Listener
	server   atomic.Value // string, host:port
	cut      atomic.Bool
	slow     atomic.Bool // what the server says arrives in small pieces
}

func newLine(t *testing.T, url string) *line {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &line{listener: l}
	p.server.Store(strings.TrimPrefix(url, "nats://"))
	go p.serve() // until the listener is closed
	t.Cleanup(func() { _ = l.Close() })
	return p
}

func (l *line) url() string { return "nats://" + l.listener.Addr().String() }

func (l *line) serve() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer client.Close()
			server, err := net.Dial("tcp", l.server.Load().(string))
			if err != nil {
				return
			}
			defer server.Close()
			go func() {
				defer server.Close()
				l.copy(server, client)
			}()
			l.copy(client, &trickle{Conn: server, slow: &l.slow})
		}()
	}
}

// copy passes on what comes until an end closes, and drops it while the line is cut.
func (l *line) copy(to, from net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if l.cut.Load() {
			// Bytes are missing from here on: when the line is whole again, the
			// connection is not.
			_, _ = io.Copy(io.Discard, io.LimitReader(from, 1<<40))
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// A trickle gives little at a time while it is slow.
type trickle struct {
	net.Conn
	slow *atomic.Bool
}

func (c *trickle) Read(b []byte) (int, error) {
	if c.slow.Load() {
		<-time.After(5 * time.Millisecond)
		b = b[:min(len(b), 1<<10)]
	}
	return c.Conn.Read(b)
}

// get returns the body of a page.
func get(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}
