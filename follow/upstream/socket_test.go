// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"glimpse/chain"
	"glimpse/follow/upstream"
)

// A socketNode is a fakeNode behind a WebSocket.
type socketNode struct {
	*fakeNode
	mu      sync.Mutex
	conns   []*websocket.Conn
	dials   int
	silent  bool // it does not tell of new heads
	ignores bool // it does not answer
}

// pipes lets one side dial what the other serves, without a network, so that
// time may stand still meanwhile.
type pipes struct {
	waiting chan net.Conn // unbuffered: a dial waits until it is accepted
	closed  chan struct{}
	once    sync.Once
}

func newPipes() *pipes { return &pipes{waiting: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.waiting:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.waiting <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serveSocket serves a node and returns options to reach it with.
func serveSocket(t *testing.T, n *socketNode) upstream.Options {
	t.Helper()
	listener := newPipes()
	server := &http.Server{Handler: n}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }() // until it is closed
	transport := &http.Transport{DialContext: listener.DialContext}
	t.Cleanup(func() {
		n.drop()
		_ = server.Close() // its connections are pipes
		<-done
		transport.CloseIdleConnections()
	})
	return upstream.Options{URLs: []string{"ws://node"}, RoundTripper: transport, Rounds: 1}
}

func (n *socketNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has answered
	}
	conn.SetReadLimit(1 << 20)
	n.mu.Lock()
	n.conns = append(n.conns, conn)
	n.dials++
	n.mu.Unlock()
	for {
		_, body, err := conn.Read(context.Background())
		if err != nil {
			return
		}
		n.mu.Lock()
		ignores := n.ignores
		n.mu.Unlock()
		if ignores {
			continue
		}
		reply := n.reply(body)
		if bytes.Contains(body, []byte(`"eth_subscribe"`)) {
			reply = strings.Replace(reply, `"error":{"code":-32601,"message":"no method eth_subscribe"}`, `"result":"0x1"`, 1)
		}
		if conn.Write(context.Background(), websocket.MessageText, []byte(reply)) != nil {
			return
		}
	}
}

// drop ends all connections.
func (n *socketNode) drop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, conn := range n.conns {
		_ = conn.CloseNow() // it may be gone already
	}
	n.conns = nil
}

// advance has a new head, and tells of it unless the node is silent.
func (n *socketNode) advance(head int) {
	n.setHead(head)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.silent {
		return
	}
	text, err := json.Marshal(objectOf(n.world.blocks[head]))
	if err != nil {
		panic(err) // of a block that was made before
	}
	message := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"0x1","result":%s}}`, text)
	for _, conn := range n.conns {
		_ = conn.Write(context.Background(), websocket.MessageText, message) // it may be gone
	}
}

func (n *socketNode) dialled() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials
}

// Many callers share one connection, and each gets its own answer.
func TestCallsShareASocket(t *testing.T) {
	n := &socketNode{fakeNode: newNode(small(t))}
	n.methods["test_echo"] = func(p []json.RawMessage) (any, error) { return p[0], nil }
	p := openAll(t, serveSocket(t, n))
	if !p.Can().Subscriptions {
		t.Error("subscriptions are not found")
	}
	dials := n.dialled()
	var callers sync.WaitGroup
	for i := range 20 {
		callers.Go(func() {
			for range 20 {
				if result, err := p.Call(t.Context(), "test_echo", i); err != nil || string(result) != fmt.Sprint(i) {
					t.Errorf("Call(%d) = %s, %v", i, result, err)
				}
			}
			q, want := allChanges(n.world, 3)
			if state, err := p.State(t.Context(), n.world.ref(3), q); err != nil || state.Slots[0] != want[0] {
				t.Errorf("State = %+v, %v", state, err)
			}
		})
	}
	callers.Wait()
	if n.dialled() > dials+1 {
		t.Errorf("%d connections were made for all calls", n.dialled()-dials)
	}
	n.drop()
	if _, err := p.Call(t.Context(), "test_echo", 5); err != nil {
		// The loss may be noticed by the first call only.
		if result, err := p.Call(t.Context(), "test_echo", 5); err != nil {
			t.Errorf("after the connection was lost: got %s, %v", result, err)
		}
	}
}

// A batch that is refused without an id is split all the same.
func TestSocketSplitsBatches(t *testing.T) {
	n := &socketNode{fakeNode: newNode(small(t))}
	n.maxBatch = 4
	n.tooLarge = func(int) string {
		return `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batch too large"}}`
	}
	p := openAll(t, serveSocket(t, n))
	q, want := allChanges(n.world, 5)
	if state, err := p.State(t.Context(), n.world.ref(5), q); err != nil || state.Slots[len(want)-1] != want[len(want)-1] {
		t.Errorf("State = %+v, %v", state, err)
	}
}

// A socket that swallows questions fails them in time, and is given up.
func TestSocketThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &socketNode{fakeNode: newNode(small(t))}
		o := serveSocket(t, n)
		o.Timeout = 5 * time.Second
		p := openAll(t, o)
		defer p.Close()
		n.mu.Lock()
		n.ignores = true
		n.mu.Unlock()
		start, dials := time.Now(), n.dialled()
		if _, err := p.Call(t.Context(), "eth_chainId"); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 5*time.Second {
			t.Errorf("after %v: got %v, want a deadline after 5 s", time.Since(start), err)
		}
		n.mu.Lock()
		n.ignores = false
		n.mu.Unlock()
		if _, err := p.Call(t.Context(), "eth_chainId"); err != nil || n.dialled() != dials+2 {
			// One for the call that was swallowed, since the probe of subscriptions
			// closed its connection, and one after it.
			t.Errorf("got %v on connection %d, want a new one", err, n.dialled()-dials)
		}
		n.drop()
	})
}

func TestHeadsBySubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &socketNode{fakeNode: newNode(small(t))}
		n.setHead(2)
		o := serveSocket(t, n)
		o.PollEvery, o.SilentAfter, o.MinBackoff, o.MaxBackoff = time.Minute, 3*time.Minute, time.Second, time.Second
		p := openAll(t, o)
		defer p.Close()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		<-time.After(time.Second)
		synctest.Wait()
		if head := <-p.Heads(); head.Latest != n.world.ref(2) {
			t.Errorf("head = %+v, want block 2", head)
		}
		start := time.Now()
		n.advance(3)
		if head := <-p.Heads(); head.Latest != n.world.ref(3) || head.Safe == (chain.Ref{}) || time.Since(start) > time.Second {
			t.Errorf("after %v head = %+v, want block 3 at once", time.Since(start), head)
		}

		// A subscription that is silent while the chain goes on is renewed.
		dials := n.dialled()
		n.mu.Lock()
		n.silent = true
		n.mu.Unlock()
		for at := 4; at <= 7; at++ {
			n.advance(at)
			<-time.After(time.Minute)
		}
		synctest.Wait()
		if head := <-p.Heads(); head.Latest.Number < 6 {
			t.Errorf("head = %+v, want one that polling found", head)
		}
		if n.dialled() == dials {
			t.Error("the silent subscription was kept")
		}

		// A chain that stands still is not the subscription's fault.
		n.mu.Lock()
		n.silent = false
		n.mu.Unlock()
		<-time.After(10 * time.Second)
		synctest.Wait()
		dials = n.dialled()
		<-time.After(30 * time.Minute)
		synctest.Wait()
		if n.dialled() != dials {
			t.Errorf("connected %d times while there was nothing to tell", n.dialled()-dials)
		}
		for len(p.Heads()) > 0 {
			<-p.Heads()
		}

		// A connection that is lost is made again.
		n.drop()
		<-time.After(10 * time.Second)
		synctest.Wait()
		n.advance(9)
		if head := <-p.Heads(); head.Latest != n.world.ref(9) {
			t.Errorf("after the connection was lost head = %+v, want block 9", head)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v, want that it was cancelled", err)
		}
		n.drop()
	})
}
