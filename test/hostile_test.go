// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// hostileMB is how much memory glimpse may take, whatever it is sent: 256 MB of
// cache, connections at up to 64 KiB each, requests and answers that are being
// worked on, and what the collector has not taken back yet. docs/operations.md
// states it.
const hostileMB = 1024

// hostileConnections is how many connections each attack opens, and for how long:
// few by default, GLIMPSE_HOSTILE_CONNECTIONS in the target that measures.
func hostileConnections(t *testing.T) (n int, each time.Duration) {
	t.Helper()
	if n = number(t, "GLIMPSE_HOSTILE_CONNECTIONS", 0); n > 0 {
		return n, 5 * time.Second
	}
	return 200, time.Second
}

// Clients that mean harm: memory stays bounded and honest requests are answered
// all the while. How fast is printed, not judged.
func TestHostileClients(t *testing.T) {
	connections, each := hostileConnections(t)
	s := startDev(t, "--rpc.header-timeout", "2s", "--rpc.body-timeout", "2s", "--rpc.idle-timeout", "5s", "--rpc.write-timeout", "2s", "--shutdown-timeout", "2s")
	w := newWallet(t, 0)
	cell := deployCell(t, s.url(), w)
	spinner := deploySpinner(t, s.url(), w)
	eventually(t, "the contracts", func() bool { return slotAt(t, s.url(), cell, "latest") == 42 })
	honest := &honest{url: s.url(), cell: cell.Hex()}

	attacks := []struct {
		name string
		run  func(ctx context.Context, s *server, n int)
	}{
		{"nobody", func(ctx context.Context, _ *server, _ int) { <-ctx.Done() }},
		{"idle connections", idle},
		{"slow headers", drip("POST / HTTP/1.1\r\nHost: localhost\r\n", "X: y\r\n")},
		{"slow bodies", drip("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n", " ")},
		{"huge headers", flood(16, "POST / HTTP/1.1\r\nHost: localhost\r\nX: "+strings.Repeat("x", 1<<20)+"\r\n\r\n")},
		{"huge bodies", flood(16, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"+strings.Repeat("100000\r\n"+strings.Repeat("x", 1<<20)+"\r\n", 8))},
		{"deep nesting", posts(16, strings.Repeat("[", 2<<20))},
		{"answers that nobody reads", unread},
		{"costly calls", posts(32, batchOf(1000, "eth_call", map[string]string{"to": spinner, "gas": "0x1fffffff"}, "latest"))},
		{"costly estimates", posts(32, batchOf(1000, "eth_estimateGas", map[string]string{"to": spinner, "gas": "0x1fffffff"}))},
		{"wide log searches", posts(32, batchOf(1000, "eth_getLogs", map[string]string{"fromBlock": "earliest", "toBlock": "latest"}))},
		{"sockets that subscribe and do not read", deafSubscribers},
		{"waiting for what never comes", waiting(min(connections, 2000))},
	}
	for _, attack := range attacks {
		t.Run(attack.name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				attack.run(ctx, s, connections)
			}()
			took := honest.reads(t, each)
			stop()
			<-ended
			peak := residentMB(t, s.cmd.Process.Pid, "VmHWM")
			t.Logf("%5d honest reads, p50 %7v, p99 %7v, most %7v; at most %d MB resident so far", len(took),
				part(took, 0.5), part(took, 0.99), part(took, 1), peak)
			if peak > hostileMB {
				t.Errorf("%d MB were resident, want at most %d", peak, hostileMB)
			}
		})
	}
}

// deploySpinner deploys a contract that takes all the gas it is given.
func deploySpinner(t *testing.T, url string, w *wallet) string {
	t.Helper()
	addr := crypto.CreateAddress(w.addr, w.nonce)
	send(t, url, w.sign(t, nil, common.FromHex("0x6003600a5f3960035ff35b5f56")))
	return addr.Hex()
}

// An honest client reads one slot again and again.
type honest struct{ url, cell string }

func (h *honest) reads(t *testing.T, d time.Duration) (took []time.Duration) {
	t.Helper()
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_getStorageAt","params":["%s","0x0","latest"]}`, h.cell)
	for end := time.Now().Add(d); time.Now().Before(end); {
		start := time.Now()
		resp, err := client.Post(h.url, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatalf("an honest read fails: %v", err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !bytes.Contains(text, []byte(`2a"`)) {
			t.Fatalf("an honest read gives %s (%v)", text, err)
		}
		took = append(took, time.Since(start))
		pause(t, time.Millisecond)
	}
	slices.Sort(took)
	return took
}

func part(sorted []time.Duration, p float64) time.Duration {
	return sorted[int(p*float64(len(sorted)-1))].Round(10 * time.Microsecond)
}

// all runs n clients until all have ended.
func all(n int, client func(i int)) {
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() { client(i) })
	}
	running.Wait()
}

// connect opens a connection that is closed when ctx ends. Where the server has
// no room it gives nil: that is an answer too.
func connect(ctx context.Context, addr string) net.Conn {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	return conn
}

func idle(ctx context.Context, s *server, n int) {
	all(n, func(int) {
		if connect(ctx, s.addr) != nil {
			<-ctx.Done()
		}
	})
}

// drip sends the beginning of a request and then a little at a time.
func drip(begin, more string) func(context.Context, *server, int) {
	return func(ctx context.Context, s *server, n int) {
		all(n, func(int) {
			conn := connect(ctx, s.addr)
			if conn == nil {
				return
			}
			text := begin
			for {
				if _, err := io.WriteString(conn, text); err != nil {
					return
				}
				text = more
				select {
				case <-ctx.Done():
					return
				case <-time.After(50 * time.Millisecond):
				}
			}
		})
	}
}

// flood sends the same bytes over new connections, again and again.
func flood(clients int, text string) func(context.Context, *server, int) {
	return func(ctx context.Context, s *server, _ int) {
		all(clients, func(int) {
			for ctx.Err() == nil {
				if conn := connect(ctx, s.addr); conn != nil {
					_, _ = io.WriteString(conn, text) // refused half way
					_, _ = io.Copy(io.Discard, conn)
					conn.Close()
				}
			}
		})
	}
}

// posts sends the same body again and again.
func posts(clients int, body string) func(context.Context, *server, int) {
	return func(ctx context.Context, s *server, _ int) {
		all(clients, func(int) {
			for ctx.Err() == nil {
				_, _ = post(ctx, s.url(), []byte(body)) // whatever it answers
			}
		})
	}
}

func batchOf(n int, method string, params ...any) string {
	calls := make([]rpcCall, n)
	for i := range calls {
		calls[i] = rpcCall{"2.0", i, method, params}
	}
	text, err := json.Marshal(calls)
	if err != nil {
		panic(err) // strings and maps of them
	}
	return string(text)
}

// unread asks for a lot and takes nothing.
func unread(ctx context.Context, s *server, n int) {
	body := batchOf(1000, "eth_getBlockByNumber", "latest", true)
	request := fmt.Sprintf("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	all(min(n, 100), func(int) {
		conn := connect(ctx, s.addr)
		if conn == nil {
			return
		}
		for ctx.Err() == nil {
			if _, err := io.WriteString(conn, request); err != nil {
				return
			}
		}
	})
}

// deafSubscribers subscribe to all there is and read nothing.
func deafSubscribers(ctx context.Context, s *server, n int) {
	all(min(n, 500), func(int) {
		conn, _, err := websocket.Dial(ctx, "ws://"+s.ws, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		for i, kind := range []string{"newHeads", "newFlashblocks", "logs"} {
			text := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"eth_subscribe","params":["%s"]}`, i, kind)
			if conn.Write(ctx, websocket.MessageText, []byte(text)) != nil {
				return
			}
		}
		<-ctx.Done()
	})
}

// waiting asks for a snapshot that is far away.
func waiting(n int) func(context.Context, *server, int) {
	return func(ctx context.Context, s *server, _ int) {
		client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: n}}
		defer client.CloseIdleConnections()
		all(n, func(int) {
			for ctx.Err() == nil {
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url(), strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}`))
				if err != nil {
					return
				}
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Glimpse-At-Least", "1000000")
				req.Header.Set("Glimpse-Wait", "5000")
				resp, err := client.Do(req)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				select { // those that there is no room for would ask at once again
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
}
