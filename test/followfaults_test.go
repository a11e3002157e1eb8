// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/coder/websocket"
)

// A middleman stands between a follower and its upstream.
type middleman struct {
	*httptest.Server
	target atomic.Pointer[url.URL] // nil while the upstream is away

	mu  sync.Mutex
	lie func(method string, answer map[string]any) // guarded by mu; nil tells the truth
}

func newMiddleman(t *testing.T, upstream string) *middleman {
	t.Helper()
	m := &middleman{}
	m.aim(t, upstream)
	m.Server = httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(m.Close)
	return m
}

func (m *middleman) aim(t *testing.T, upstream string) {
	t.Helper()
	target, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	m.target.Store(target)
}

func (m *middleman) serve(w http.ResponseWriter, r *http.Request) {
	target := m.target.Load()
	if target == nil {
		http.Error(w, "away", http.StatusBadGateway)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.Header.Del("Accept-Encoding")
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(p *httputil.ProxyRequest) { p.SetURL(target) },
		ModifyResponse: func(resp *http.Response) error { return m.alter(body, resp) },
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	proxy.ServeHTTP(w, r)
}

// alter lets the lie have each answer that belongs to a call.
func (m *middleman) alter(request []byte, resp *http.Response) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lie == nil {
		return nil
	}
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	var calls []struct {
		ID     float64
		Method string
	}
	var answers []map[string]any
	single := json.Unmarshal(answer, &answers) != nil
	if single {
		answers = []map[string]any{nil}
		calls = append(calls, struct {
			ID     float64
			Method string
		}{})
		_ = json.Unmarshal(answer, &answers[0]) // the peer sends JSON
		_ = json.Unmarshal(request, &calls[0])
	} else if err := json.Unmarshal(request, &calls); err != nil {
		return err
	}
	for _, c := range calls {
		for _, a := range answers {
			if a["id"] == c.ID {
				m.lie(c.Method, a)
			}
		}
	}
	if single {
		answer, err = json.Marshal(answers[0])
	} else {
		answer, err = json.Marshal(answers)
	}
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	resp.ContentLength = int64(len(answer))
	resp.Header.Del("Content-Length")
	return err
}

// A fault is something that goes wrong while a chain is followed.
type fault struct {
	name string
	do   func(t *testing.T, w *faultyWorld)
}

// A faultyWorld is an upstream, what is between, and a follower.
type faultyWorld struct {
	upstream  *server
	middle    *middleman
	follower  *server
	args      []string
	followDir string
	devDir    string
	first     uint64 // block that the follower began with
}

func (w *faultyWorld) startDev(t *testing.T) {
	t.Helper()
	w.upstream = startDev(t, "--dev.block-time", "200ms", "--dev.flashblock-time", "20ms", "--datadir", w.devDir, "--pending.max-age", "1s")
}

// Whatever goes wrong with the upstream, the feed or the process: afterwards every
// read equals the upstream's.
func TestFollowFaults(t *testing.T) {
	faults := []fault{
		{"the upstream dies and returns", func(t *testing.T, w *faultyWorld) {
			w.middle.target.Store(nil)
			w.upstream.kill(t)
			pause(t, 500*time.Millisecond)
			w.startDev(t)
			w.middle.aim(t, w.upstream.url())
		}},
		{"the upstream reorganises ten deep", func(t *testing.T, w *faultyWorld) {
			eventually(t, "blocks", func() bool { return height(t, w.upstream.url()) > w.first+12 })
			call(t, w.upstream.url(), "dev_reorg", 10)
		}},
		{"the feed is silent", func(t *testing.T, w *faultyWorld) {
			call(t, w.upstream.url(), "dev_stallFeed")
			pause(t, 1500*time.Millisecond)
			call(t, w.upstream.url(), "dev_resumeFeed")
		}},
		{"flashblocks are dropped, reordered, duplicated and delayed", func(t *testing.T, w *faultyWorld) {
			for _, how := range []string{"dev_dropFlashblocks", "dev_reorderFlashblocks", "dev_duplicateFlashblocks", "dev_delayFlashblocks"} {
				call(t, w.upstream.url(), how, 3)
				pause(t, 200*time.Millisecond)
			}
		}},
		{"a promise is broken", func(t *testing.T, w *faultyWorld) {
			call(t, w.upstream.url(), "dev_pauseSealing")
			wallet := newWallet(t, 4)
			cell := deployCell(t, w.upstream.url(), wallet)
			hash := send(t, w.upstream.url(), wallet.sign(t, &cell, word(1)))
			eventually(t, "the promise on the follower", func() bool { return slotAt(t, w.follower.url(), cell, "pending") == 1 })
			call(t, w.upstream.url(), "dev_revoke", hash)
			call(t, w.upstream.url(), "dev_resumeSealing")
			eventually(t, "the promise to be withdrawn", func() bool { return slotAt(t, w.follower.url(), cell, "pending") == 42 })
		}},
		{"the follower is killed and started again", func(t *testing.T, w *faultyWorld) {
			for range 3 {
				pause(t, time.Duration(rand.IntN(400))*time.Millisecond)
				w.follower.kill(t)
				w.follower = startFollow(t, w.middle.URL, w.args...)
			}
		}},
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			w := &faultyWorld{followDir: t.TempDir(), devDir: t.TempDir()}
			w.startDev(t)
			w.middle = newMiddleman(t, w.upstream.url())
			bad := badFeed(t)
			w.args = []string{"--datadir", w.followDir, "--feed", "ws://" + w.upstream.feed(t) + "/ws", "--feed", bad, "--pending.max-age", "1s"}
			l := newStorageLoad(t, rand.Uint64(), w.upstream.url())
			eventually(t, "a first block", func() bool { return height(t, w.upstream.url()) > 1 })
			w.follower = startFollow(t, w.middle.URL, w.args...)
			first := height(t, w.follower.url())
			w.first = first
			work := func() {
				for range 15 {
					l.step(t)
					pause(t, 20*time.Millisecond)
				}
			}
			work()
			f.do(t, w)
			l.url = w.upstream.url()
			l.refresh(t)
			work()
			last := height(t, w.upstream.url())
			eventually(t, "the follower to catch up", func() bool { return height(t, w.follower.url()) >= last })
			compareFollowed(t, w.follower.url(), w.upstream.url(), first, last)
		})
	}
}

// badFeed is a feed that sends garbage, a frame of 100 MB and a Brotli bomb.
func badFeed(t *testing.T) (url string) {
	t.Helper()
	var bomb bytes.Buffer
	w := brotli.NewWriterLevel(&bomb, 5)
	if _, err := io.Copy(w, io.LimitReader(zeroes{}, 64<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	huge := bytes.Repeat([]byte{' '}, 100<<20)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		for i := 0; ; i++ {
			frame := [][]byte{[]byte("garbage"), bomb.Bytes(), []byte(`{"payload_id":"0x01"}`), huge}[i%4]
			ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
			err := conn.Write(ctx, websocket.MessageBinary, frame)
			cancel()
			if err != nil {
				return
			}
			select {
			case <-r.Context().Done():
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}))
	t.Cleanup(server.Close)
	return strings.Replace(server.URL, "http", "ws", 1)
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// An upstream that lies about one slot is found out where proofs are asked for,
// and by name.
func TestFollowRefusesALie(t *testing.T) {
	anvil := os.Getenv("GLIMPSE_ANVIL")
	if anvil == "" {
		t.Skip("GLIMPSE_ANVIL is not set; make e2e-follow installs an anvil and sets it")
	}
	upstream := startAnvil(t, anvil)
	w := newWallet(t, 0)
	cell := deployCell(t, upstream, w)
	eventually(t, "the cell", func() bool { return slotAt(t, upstream, cell, "latest") == 42 })
	m := newMiddleman(t, upstream)
	f := startFollow(t, m.URL, "--datadir", t.TempDir(), "--verify-proofs")
	m.mu.Lock()
	m.lie = func(method string, answer map[string]any) {
		if method != "eth_getProof" {
			return
		}
		result, _ := answer["result"].(map[string]any)
		for _, s := range result["storageProof"].([]any) {
			s.(map[string]any)["value"] = "0x7"
		}
	}
	m.mu.Unlock()
	got := errorCode(t, f.url(), "eth_getStorageAt", cell, "0x0", "latest")
	if got.Code != -32603 {
		t.Errorf("the lie is answered with code %d, want -32603", got.Code)
	}
	m.mu.Lock()
	m.lie = nil
	m.mu.Unlock()
	eventually(t, "the truth", func() bool {
		body, err := json.Marshal(rpcCall{"2.0", 1, "eth_getStorageAt", []any{cell, "0x0", "latest"}})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := post(t.Context(), f.url(), body)
		return err == nil && strings.Contains(string(answer), `2a"`)
	})
	f.stopNow(t)
	if log := f.log.String(); !strings.Contains(strings.ToLower(log), strings.ToLower(cell.Hex())) {
		t.Errorf("the log does not name the account:\n%s", log)
	}
}
