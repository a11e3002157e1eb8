// SPDX-License-Identifier: Apache-2.0

//go:build linux

package load_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"glimpse/bench/load"
)

func serve(t *testing.T, handler http.HandlerFunc) (addr string) {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func pool(bodies ...string) *load.Pool {
	p := new(load.Pool)
	for _, b := range bodies {
		p.Add([]byte(b))
	}
	return p
}

// short is long enough for many requests.
func short(connections int) load.Options {
	return load.Options{Connections: connections, Duration: 150 * time.Millisecond, Core: -1}
}

func TestEveryAnswerIsCounted(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"of a given length": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"result":"0x1"}`) },
		"in chunks": func(w http.ResponseWriter, _ *http.Request) {
			for _, part := range []string{`{"res`, `ult":`, strings.Repeat(" ", 5000), `"0x1"}`} {
				io.WriteString(w, part)
				w.(http.Flusher).Flush()
			}
		},
		"larger than any buffer at first": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "300000")
			io.WriteString(w, strings.Repeat("1", 300_000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var served atomic.Int64
			addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
				served.Add(1)
				answer(w, r)
			})
			const connections = 8
			r, err := load.Run(t.Context(), addr, pool(`{"id":1}`), short(connections))
			if err != nil {
				t.Fatal(err)
			}
			// Those on the way at the end are served and not counted.
			if extra := int(served.Load()) - r.Answers; r.Answers == 0 || extra < 0 || extra > connections {
				t.Errorf("got %d answers of %d served", r.Answers, served.Load())
			}
			if r.Failures != 0 || r.Latency.Count() != uint64(r.Answers) {
				t.Errorf("got %d failures and %d times, want none and %d", r.Failures, r.Latency.Count(), r.Answers)
			}
			if r.OwnCPU <= 0 || r.OwnCPU > r.Elapsed+20*time.Millisecond {
				t.Errorf("got %v of processor time in %v, on one thread", r.OwnCPU, r.Elapsed)
			}
			if r.Throughput() <= 0 || r.Elapsed < 150*time.Millisecond {
				t.Errorf("got %v answers a second in %v", r.Throughput(), r.Elapsed)
			}
		})
	}
}

func TestRequestsArriveWholeAndAllOfThem(t *testing.T) {
	bodies := []string{`{"id":1}`, `{"id":2}`, strings.Repeat("3", 4_000_000)} // the last is more than a socket takes at once
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var mu sync.Mutex
	missing := map[string]bool{bodies[0]: true, bodies[1]: true, bodies[2]: true}
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // it was on the way at the end
		}
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(bodies, string(body)) {
			t.Errorf("a request of %d bytes arrived that nobody made: %.50q", len(body), body)
		}
		if delete(missing, string(body)); len(missing) == 0 {
			cancel()
		}
		io.WriteString(w, "{}")
	})
	o := short(4)
	o.Duration = time.Hour
	if _, err := load.Run(ctx, addr, pool(bodies...), o); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want all requests before the time is over", err)
	}
}

func TestAnswersThatAreErrorsAreFailures(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"an error of JSON-RPC": {
			func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"id":1,"error":{"code":-32000}}`) },
			`status 200: {"id":1,"error":{"code":-32000}}`,
		},
		"a status that is not 200": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503); io.WriteString(w, "busy") },
			"status 503: busy",
		},
		"nothing at all": {func(http.ResponseWriter, *http.Request) {}, "status 200: "},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := load.Run(t.Context(), serve(t, c.handler), pool("{}"), short(2))
			if err != nil {
				t.Fatal(err)
			}
			if r.Answers != 0 || r.Failures == 0 || r.FirstFailure != c.want {
				t.Errorf("got %d answers, %d failures, first %q; want none, some and %q", r.Answers, r.Failures, r.FirstFailure, c.want)
			}
		})
	}
}

func TestSlowAnswersShowInTheirQuantile(t *testing.T) {
	const slow = 30 * time.Millisecond
	var served atomic.Int64
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if served.Add(1)%10 == 0 {
			<-time.After(slow)
		}
		io.WriteString(w, "{}")
	})
	r, err := load.Run(t.Context(), addr, pool("{}"), short(1))
	if err != nil {
		t.Fatal(err)
	}
	if p50, p99 := r.Latency.Quantile(0.5), r.Latency.Quantile(0.99); p50 >= slow || p99 < slow*99/100 {
		t.Errorf("got p50 %v and p99 %v, want one below %v and one above", p50, p99, slow)
	}
}

func TestOnlyTheTimeAfterTheWarmupIsMeasured(t *testing.T) {
	cpu := []time.Duration{5 * time.Second, 7 * time.Second}
	calls := 0
	o := short(1)
	o.Warmup = 50 * time.Millisecond
	o.ServerCPU = func() (time.Duration, error) { calls++; return cpu[calls-1], nil }
	var served atomic.Int64
	addr := serve(t, func(w http.ResponseWriter, _ *http.Request) { served.Add(1); io.WriteString(w, "{}") })
	r, err := load.Run(t.Context(), addr, pool("{}"), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.ServerCPU != 2*time.Second || calls != 2 {
		t.Errorf("got %v of the server's time in %d calls, want 2s in 2", r.ServerCPU, calls)
	}
	if int(served.Load()) <= r.Answers+1 {
		t.Errorf("got %d answers of %d served, want those of the warm-up left out", r.Answers, served.Load())
	}
}

func TestWhatIsNotAServerIsAnError(t *testing.T) {
	speak := func(answer string) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				conn.Read(make([]byte, 1000))
				io.WriteString(conn, answer)
				conn.Close()
			}
		}()
		return l.Addr().String()
	}
	for name, answer := range map[string]string{
		"an answer that is cut off":      "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}",
		"an answer without a length":     "HTTP/1.1 200 OK\r\n\r\n{}",
		"an answer with no whole length": "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}",
		"a chunk without a size":         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
		"another protocol":               "SSH-2.0-OpenSSH\r\n\r\n",
		"silence":                        "",
	} {
		t.Run(name, func(t *testing.T) {
			if r, err := load.Run(t.Context(), speak(answer), pool("{}"), short(1)); err == nil {
				t.Errorf("got %d answers, want an error", r.Answers)
			}
		})
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var once sync.Once
	addr := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		once.Do(cancel)
		io.WriteString(w, "{}")
	})
	o := short(1)
	o.Duration = time.Hour
	if _, err := load.Run(ctx, addr, pool("{}"), o); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
}

func TestAnEmptyPoolIsRefused(t *testing.T) {
	if _, err := load.Run(t.Context(), "127.0.0.1:1", new(load.Pool), short(1)); !errors.Is(err, load.ErrNoRequests) {
		t.Errorf("got %v, want %v", err, load.ErrNoRequests)
	}
}

func TestPinRefusesWhatIsNotThere(t *testing.T) {
	for name, cores := range map[string][]int{"a negative one": {-1}, "one beyond all machines": {1 << 20}, "none": nil} {
		t.Run(name, func(t *testing.T) {
			if err := load.Pin(0, cores); err == nil {
				t.Error("got no error")
			}
		})
	}
}
