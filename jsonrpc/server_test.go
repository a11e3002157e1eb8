// SPDX-License-Identifier: Apache-2.0

package jsonrpc_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"glimpse/jsonrpc"
)

// wait returns what Serve returned.
func (r *running) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(patience):
		t.Fatal("Serve did not return")
		return nil
	}
}

func TestShutdownFinishesWhatIsUnderWay(t *testing.T) {
	h := &toy{began: make(chan struct{}, 10), release: make(chan struct{})}
	r := start(t, h, jsonrpc.Options{ShutdownTimeout: patience})
	c := r.dial(t)
	c.send(post(call("1", "block", "[]")))
	<-h.began

	r.stop()
	for refused := false; !refused; {
		other, err := net.Dial("tcp", r.addr)
		if refused = err != nil; !refused {
			other.Close()
		}
	}
	close(h.release)
	got := c.receive("POST")
	if want := result("1", `"released"`); got.body != want {
		t.Errorf("got %s, want %s", got.body, want)
	}
	if !got.close {
		t.Error("got an answer that keeps the connection, want Connection: close")
	}
	c.receiveEnd()
	if err := r.wait(t); err != nil {
		t.Errorf("Serve: got %v, want nil", err)
	}
}

// Neither a connection that was never used nor one between two requests keeps
// a server from ending.
func TestShutdownDoesNotWaitForIdleConnections(t *testing.T) {
	r := start(t, new(toy), jsonrpc.Options{ShutdownTimeout: time.Hour})
	fresh, used := r.dial(t), r.dial(t)
	used.send(post(one))
	used.receive("POST")
	r.stop()
	if err := r.wait(t); err != nil {
		t.Errorf("Serve: got %v, want nil", err)
	}
	fresh.receiveEnd()
	used.receiveEnd()
}

func TestShutdownCutsOffWhatTakesTooLong(t *testing.T) {
	h := &toy{began: make(chan struct{}, 10)}
	r := start(t, h, jsonrpc.Options{ShutdownTimeout: 10 * time.Millisecond})
	c := r.dial(t)
	c.send(post(call("1", "block", "[]")))
	<-h.began
	r.stop()
	if err := r.wait(t); !errors.Is(err, jsonrpc.ErrCutOff) || !strings.Contains(err.Error(), " 1 connections") {
		t.Errorf("Serve: got %v, want one connection cut off", err)
	}
	if _, err := c.r.ReadByte(); err == nil {
		t.Error("got an answer, want the connection closed")
	}
}

// A request of which a part has arrived is under way too.
func TestShutdownWaitsForTheRestOfARequest(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	l := &pipeListener{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
	l.conns <- server
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- jsonrpc.NewServer(new(toy), jsonrpc.Options{}).Serve(ctx, l) }()

	request := post(one)
	// A write to a pipe returns when it has been read, so after the second one
	// the server has taken notice of the first.
	for _, part := range []string{request[:10], request[10:20]} {
		if _, err := io.WriteString(client, part); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	<-l.closed
	if _, err := io.WriteString(client, request[20:]); err != nil {
		t.Fatalf("send the rest: %v", err)
	}
	res, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("got %v, %v, want an answer", res, err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Serve: got %v, want nil", err)
	}
}

// A pipeListener accepts what is put into conns.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

func TestServeReportsABrokenListener(t *testing.T) {
	want := errors.New("broken")
	err := jsonrpc.NewServer(new(toy), jsonrpc.Options{}).Serve(t.Context(), brokenListener{err: want})
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

type brokenListener struct {
	net.Listener
	err error
}

func (l brokenListener) Accept() (net.Conn, error) { return nil, l.err }
func (l brokenListener) Close() error              { return nil }

func TestSlowClientsAreCutOff(t *testing.T) {
	short := 30 * time.Millisecond
	tests := []struct {
		name    string
		options jsonrpc.Options
		first   string
	}{
		{"in the header", jsonrpc.Options{HeaderTimeout: short}, "POST / HTTP/1.1\r\nX: "},
		{"in the body", jsonrpc.Options{BodyTimeout: short}, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := start(t, new(toy), tt.options).dial(t)
			c.send(tt.first)
			answered := make(chan struct{})
			dribbled := make(chan struct{})
			go func() {
				defer close(dribbled)
				tick := time.NewTicker(5 * time.Millisecond)
				defer tick.Stop()
				for {
					select {
					case <-answered:
						return
					case <-tick.C:
						if _, err := io.WriteString(c.Conn, "y"); err != nil {
							return
						}
					}
				}
			}()
			got := c.receive("POST")
			close(answered)
			<-dribbled
			if got.status != 408 {
				t.Errorf("got %d %s, want 408", got.status, got.body)
			}
			c.CloseWrite()
			c.receiveEnd()
		})
	}
}

// The server ends although its shutdown would wait for an hour: the write gave
// up by itself.
func TestClientsThatDoNotReadAreCutOff(t *testing.T) {
	h := &toy{began: make(chan struct{}, 1)}
	r := start(t, h, jsonrpc.Options{WriteTimeout: 20 * time.Millisecond, ShutdownTimeout: time.Hour})
	c := r.dial(t)
	c.send(post(call("1", "kilobytes", "[24000]")))
	<-h.began
	r.stop()
	if err := r.wait(t); err != nil {
		t.Errorf("Serve: got %v, want nil", err)
	}
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	c := start(t, new(toy), jsonrpc.Options{IdleTimeout: 20 * time.Millisecond}).dial(t)
	c.send(post(one))
	c.receive("POST")
	c.receiveEnd()
}

func TestTooManyConnections(t *testing.T) {
	h := &toy{began: make(chan struct{}, 1), release: make(chan struct{})}
	r := start(t, h, jsonrpc.Options{MaxConnections: 1})
	first := r.dial(t)
	first.send(post(call("1", "block", "[]")))
	<-h.began

	second := r.dial(t)
	got := second.receive("POST")
	if got.status != 503 {
		t.Errorf("got %d, want 503", got.status)
	}
	checkBody(t, "POST", got)

	close(h.release)
	if got := first.receive("POST"); got.status != 200 {
		t.Errorf("first connection: got %d, want 200", got.status)
	}
}

func TestPanicsAreReported(t *testing.T) {
	var reported atomic.Value
	r := start(t, new(toy), jsonrpc.Options{OnPanic: func(value any, stack []byte) {
		if strings.Contains(string(stack), "toy") {
			reported.Store(value)
		}
	}})
	c := r.dial(t)
	c.send(post(call("1", "panic", "[]")))
	if got := withoutMessages(t, c.receive("POST").body); got != fault("1", -32603) {
		t.Errorf("got %s, want %s", got, fault("1", -32603))
	}
	if got := reported.Load(); got != "toy" {
		t.Errorf("reported %v, want toy", got)
	}
	c.send(post(one))
	if got := c.receive("POST"); got.status != 200 {
		t.Errorf("after a panic: got %d, want 200", got.status)
	}
}

func TestPanicInBeginAnswersEveryCall(t *testing.T) {
	got := withoutMessages(t, jsonrpc.Answer(panicky{}, jsonrpc.Options{}, "["+call("1", "one", "[]")+","+call("2", "one", "[]")+"]"))
	if want := "[" + fault("1", -32603) + "," + fault("2", -32603) + "]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// panicky is a Handler that cannot begin.
type panicky struct{ toy }

func (panicky) Has([]byte) bool { return true }

func (panicky) Begin(context.Context, jsonrpc.Header) jsonrpc.Session { panic("begin") }
