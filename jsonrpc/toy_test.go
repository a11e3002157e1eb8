// SPDX-License-Identifier: Apache-2.0

package jsonrpc_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"glimpse/jsonrpc"
)

// patience is how long a test waits for what should happen at once.
const patience = 10 * time.Second

// toy is a Handler with one method per behaviour. The zero toy is complete.
type toy struct {
	began   chan struct{} // receives at each Begin, where set
	release chan struct{} // what "block" waits for
	at      chan string   // receives the At-Least field at each Begin, where set
}

func (t *toy) Has(method []byte) bool { return bytes.HasPrefix(method, []byte("toy_")) }

func (t *toy) Begin(_ context.Context, header jsonrpc.Header) jsonrpc.Session {
	if t.began != nil {
		t.began <- struct{}{}
	}
	if t.at != nil {
		value := header.Peek("At-Least")
		if value == nil {
			value = []byte("absent")
		}
		t.at <- string(value)
	}
	return t
}

func (t *toy) End() {}

func (t *toy) Stamp() (string, []byte) { return "Toy-Snapshot", []byte("7") }

func (t *toy) Call(ctx context.Context, dst, method []byte, params jsonrpc.Values) ([]byte, *jsonrpc.Error) {
	switch string(method) {
	case "toy_one":
		return append(dst, '1'), nil
	case "toy_echo":
		v, ok := params.Next()
		if !ok {
			return nil, jsonrpc.InvalidParams("missing value for required argument 0")
		}
		return append(dst, v...), nil
	case "toy_kilobytes":
		v, _ := params.Next()
		n := 0
		if _, err := fmt.Sscan(string(v), &n); err != nil {
			return nil, jsonrpc.InvalidParams("want a number")
		}
		dst = append(dst, '"')
		dst = append(dst, bytes.Repeat([]byte("x"), n*1000)...)
		return append(dst, '"'), nil
	case "toy_miss":
		return append(dst, "half a resul"...), &jsonrpc.Error{Code: -32000, Message: "a \"miss\"\n", Data: []byte(`{"reason":"future"}`)}
	case "toy_nothing":
		return dst, nil
	case "toy_panic":
		panic("toy")
	case "toy_block":
		select {
		case <-t.release:
			return append(dst, `"released"`...), nil
		case <-ctx.Done():
			return nil, &jsonrpc.Error{Code: -32000, Message: "given up"}
		}
	}
	return nil, jsonrpc.MethodNotFound(method)
}

// call is a request body with the method toy_<name>.
func call(id, name, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"toy_%s","params":%s}`, id, name, params)
}

// A running server of a test.
type running struct {
	server *jsonrpc.Server
	addr   string
	stop   context.CancelFunc
	ended  chan error
}

// start serves h over HTTP on a free port until the test ends.
func start(t testing.TB, h jsonrpc.Handler, o jsonrpc.Options) *running {
	t.Helper()
	s := jsonrpc.NewServer(h, o)
	return run(t, s, s.Serve)
}

// run serves with a method of s on a free port until the test ends.
func run(t testing.TB, s *jsonrpc.Server, serve func(context.Context, net.Listener) error) *running {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{server: s, addr: l.Addr().String(), stop: cancel, ended: make(chan error, 1)}
	go func() { r.ended <- serve(ctx, l); close(r.ended) }()
	t.Cleanup(func() {
		cancel()
		select {
		case <-r.ended:
		case <-time.After(patience):
			t.Error("Serve did not return")
		}
	})
	return r
}

func (r *running) dial(t testing.TB) *client {
	t.Helper()
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &client{TB: t, Conn: c, r: bufio.NewReader(c)}
}

// A client speaks raw bytes over one connection.
type client struct {
	testing.TB
	net.Conn
	r *bufio.Reader
}

func (c *client) send(text string) {
	c.Helper()
	if _, err := io.WriteString(c.Conn, text); err != nil {
		c.Fatalf("send: %v", err)
	}
}

// An answer is a whole HTTP response.
type answer struct {
	status int
	header http.Header
	body   string
	close  bool
}

func (c *client) receive(method string) answer {
	c.Helper()
	res, err := http.ReadResponse(c.r, &http.Request{Method: method})
	if err != nil {
		c.Fatalf("receive: %v", err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.Fatalf("receive body: %v", err)
	}
	return answer{res.StatusCode, res.Header, string(body), res.Close}
}

// receiveEnd fails unless the server closed the connection in order.
func (c *client) receiveEnd() {
	c.Helper()
	if b, err := c.r.ReadByte(); err != io.EOF {
		c.Errorf("read after the last answer: got %q, %v, want EOF", b, err)
	}
}

// post is a request with a length and the given extra header lines.
func post(body string, lines ...string) string {
	head := "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	for _, line := range lines {
		head += line + "\r\n"
	}
	return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), body)
}

// TestMain fails when a goroutine of the package is left at the end.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if left := leftBehind(time.Now().Add(patience)); left != "" {
			fmt.Println("goroutine left behind:\n" + left)
			code = 1
		}
	}
	os.Exit(code)
}

func leftBehind(deadline time.Time) (left string) {
	stacks := make([]byte, 1<<20)
	for {
		left = ""
		for _, stack := range strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			if strings.Contains(stack, "glimpse/jsonrpc.") {
				left = stack
			}
		}
		if left == "" || time.Now().After(deadline) {
			return left
		}
		runtime.Gosched()
	}
}
