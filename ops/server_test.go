// SPDX-License-Identifier: Apache-2.0

package ops_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"glimpse/ops"
)

// pipes is a listener whose connections are in memory, so that they can be
// waited for in a bubble.
type pipes struct {
	conns  chan net.Conn // unbuffered: dial waits until the server accepts
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// start serves until the returned function is called, which checks how it ended.
func start(t *testing.T, w *world, l net.Listener) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- ops.Serve(ctx, l, ops.Options{Metrics: w.metrics, Health: w.health})
	}()
	return func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: got %v, want no error", err)
		}
	}
}

func TestServeOverARealConnection(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(ops.HealthOptions{})
	stop := start(t, w, l)
	url := "http://" + l.Addr().String()
	expect := func(path string, status int, text string) {
		t.Helper()
		r, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		if err := errors.Join(err, r.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if r.StatusCode != status || !strings.Contains(string(body), text) {
			t.Errorf("%s: got %d %s, want %d with %q", path, r.StatusCode, body, status, text)
		}
	}
	expect("/livez", 200, `{"status":"ok"}`)
	expect("/metrics", 200, "glimpse_head_block{tag=\"latest\"} 100\n")
	w.health.Drain()
	expect("/readyz", 503, `"draining"`)
	expect("/livez", 200, "ok")
	stop()
	if r, err := http.Get(url + "/livez"); err == nil {
		r.Body.Close()
		t.Errorf("after the end: got %d, want no connection", r.StatusCode)
	}
}

func TestServeEndsSlowClients(t *testing.T) {
	tests := []struct {
		name, sends string
		within      time.Duration
	}{
		{"one that sends nothing", "", 5 * time.Second},
		{"one that sends half a header", "GET /livez HTTP/1.1\r\nHost: ", 5 * time.Second},
		{"one that asks and stays", "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n", 2 * time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newPipes()
				stop := start(t, newWorld(ops.HealthOptions{}), l)
				client, began := l.dial(), time.Now()
				if tt.sends != "" {
					if _, err := io.WriteString(client, tt.sends); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := io.Copy(io.Discard, client); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took != tt.within {
					t.Errorf("disconnected after %v, want %v", took, tt.within)
				}
				stop()
			})
		})
	}
}

func TestServeRefusesBigHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		stop := start(t, newWorld(ops.HealthOptions{}), l)
		client := l.dial()
		go func() {
			// The server stops reading somewhere in it.
			_, _ = io.WriteString(client, "GET /livez HTTP/1.1\r\nHost: a\r\nX: "+strings.Repeat("x", 1<<20))
		}()
		answer, err := io.ReadAll(client)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 431 ") {
			t.Errorf("got %q, %v, want 431", answer, err)
		}
		client.Close()
		stop()
	})
}

func TestServeBoundsConnections(t *testing.T) {
	const most = 256
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		stop := start(t, newWorld(ops.HealthOptions{}), l)
		open := make([]net.Conn, most)
		for i := range open {
			open[i] = l.dial()
		}
		accepted := make(chan net.Conn, 1)
		go func() { accepted <- l.dial() }()
		synctest.Wait()
		select {
		case <-accepted:
			t.Fatal("one connection more than the bound was accepted")
		default:
		}
		open[0].Close()
		(<-accepted).Close() // its place is free
		for _, c := range open {
			c.Close()
		}
		stop()
	})
}

// A request that does not end must not keep the node from stopping.
func TestServeStopsWithinItsGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered := make(chan struct{})
		release := make(chan struct{})
		health := ops.NewHealth(ops.HealthOptions{Heads: func() (ops.Heads, bool) {
			close(entered)
			<-release
			return ops.Heads{}, false
		}})
		w := &world{health: health, metrics: ops.NewMetrics(ops.MetricsOptions{Health: health})}
		l := newPipes()
		stop := start(t, w, l)
		client := l.dial()
		go func() {
			_, _ = io.WriteString(client, "GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n") // it is cut off
			_, _ = io.Copy(io.Discard, client)
		}()
		<-entered
		began := time.Now()
		stop()
		if took := time.Since(began); took != time.Second {
			t.Errorf("stopped after %v, want 1s", took)
		}
		close(release)
		client.Close()
	})
}
