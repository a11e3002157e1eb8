// SPDX-License-Identifier: Apache-2.0

package feed_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"glimpse/chain"
	"glimpse/flashblock"
	"glimpse/flashblock/feed"
)

// A network is made of pipes, so that time can be virtual on it. Hosts that it
// does not know refuse connections.
type network struct {
	hosts map[string]chan net.Conn // when full, the one who calls waits
	end   chan struct{}
}

func newNetwork(t *testing.T, hosts map[string]http.Handler) *network {
	t.Helper()
	n := &network{hosts: make(map[string]chan net.Conn), end: make(chan struct{})}
	var all sync.WaitGroup
	for name, handler := range hosts {
		calls := make(chan net.Conn)
		n.hosts[name+":80"] = calls
		server := &http.Server{Handler: handler}
		all.Go(func() { _ = server.Serve(listener{calls, n.end}) }) // it ends with the network
	}
	t.Cleanup(func() {
		close(n.end)
		all.Wait()
	})
	return n
}

func (n *network) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: n.dial, DisableKeepAlives: true}}
}

func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	calls, ok := n.hosts[address]
	if !ok {
		return nil, syscall.ECONNREFUSED
	}
	near, far := net.Pipe()
	select {
	case calls <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type listener struct {
	calls chan net.Conn
	end   chan struct{}
}

func (l listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.calls:
		return c, nil
	case <-l.end:
		return nil, net.ErrClosed
	}
}

func (l listener) Close() error   { return nil }
func (l listener) Addr() net.Addr { return &net.TCPAddr{} }

// accepting serves WebSocket clients with a function. Pings are answered while it
// runs, and the connection ends without a word when it returns.
func accepting(serve func(ctx context.Context, conn *websocket.Conn)) http.Handler {
	return acceptingWith(nil, serve)
}

func acceptingWith(o *websocket.AcceptOptions, serve func(ctx context.Context, conn *websocket.Conn)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, o)
		if err != nil {
			return
		}
		serve(conn.CloseRead(context.WithoutCancel(r.Context())), conn)
		_ = conn.CloseNow() // it may be closed already
	})
}

// An audience collects the events of a client.
type audience struct {
	mu     sync.Mutex
	events []feed.Event
}

func (a *audience) tell(e feed.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.events = append(a.events, e)
}

func (a *audience) all() []feed.Event {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.events)
}

func (a *audience) of(what feed.Happening) (some []feed.Event) {
	for _, e := range a.all() {
		if e.What == what {
			some = append(some, e)
		}
	}
	return some
}

// follow runs a client of some hosts until the test ends, and checks that it ends.
func follow(t *testing.T, n *network, o feed.ClientOptions, hosts ...string) (*feed.Client, *audience) {
	t.Helper()
	a := new(audience)
	o.OnEvent = a.tell
	o.HTTPClient = n.client()
	for _, host := range hosts {
		o.Feeds = append(o.Feeds, feed.Endpoint{URL: "ws://" + host + feed.Path})
	}
	return run(t, o), a
}

func run(t *testing.T, o feed.ClientOptions) *feed.Client {
	t.Helper()
	c, err := feed.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
		for {
			_, err := c.Next(context.Background())
			if errors.Is(err, feed.ErrClosed) {
				break
			}
			if err != nil {
				t.Errorf("Next after the end = %v, want ErrClosed", err)
				break
			}
		}
		if s := c.Stats(); s.Connected != 0 {
			t.Errorf("%d feeds are connected after the end", s.Connected)
		}
	})
	return c
}

// expect takes the next flashblock.
func expect(t *testing.T, c *feed.Client, number, index uint64) *flashblock.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // of virtual time, mostly
	defer cancel()
	m, err := c.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if uint64(m.Number) != number || m.Index != index {
		t.Errorf("flashblock %s, want %d.%d", m.Position(), number, index)
	}
	return m
}

func encode(t testing.TB, m *flashblock.Message) []byte {
	t.Helper()
	text, err := flashblock.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// of returns the flashblock with some number and index. Index 0 is left out, which
// would need a base.
func of(number, index uint64) *flashblock.Message {
	return &flashblock.Message{
		Number: chain.Number(number), Index: index, Payload: flashblock.PayloadID{3, byte(number)},
		Delta: flashblock.Delta{Transactions: [][]byte{{1, 2, 3}}},
	}
}

func send(ctx context.Context, t *testing.T, conn *websocket.Conn, data []byte) {
	t.Helper()
	if err := conn.Write(ctx, websocket.MessageText, data); err != nil && ctx.Err() == nil {
		t.Errorf("send: %v", err)
	}
}

// hijacking keeps the connection that is taken over.
type hijacking struct {
	http.ResponseWriter
	conn net.Conn
}

func (h *hijacking) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(h.ResponseWriter).Hijack()
	h.conn = conn
	return conn, buffered, err
}
