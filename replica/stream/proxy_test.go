// SPDX-License-Identifier: Apache-2.0

package stream_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"glimpse/replica"
	"glimpse/replica/replicatest"
	"glimpse/replica/stream"
)

// A proxy stands between a client and a server. While it is deaf, nothing of what
// the server says arrives, acknowledgements among it.
type proxy struct {
	listener net.Listener
	server   string
	deaf     atomic.Bool

	mu    sync.Mutex
	conns []net.Conn // guarded by mu
}

func startProxy(t *testing.T, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, server: strings.TrimPrefix(server, "nats://")}
	var serving sync.WaitGroup
	serving.Go(func() { p.serve(&serving) })
	t.Cleanup(func() {
		_ = l.Close() // it ends serve
		p.cut()
		serving.Wait()
	})
	return p
}

func (p *proxy) serve(serving *sync.WaitGroup) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close() // the client tries again
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		serving.Go(func() {
			_, _ = io.Copy(server, client) // it ends with the connection
			_ = server.Close()
		})
		serving.Go(func() {
			_, _ = io.Copy(hearing{client, &p.deaf}, server)
			_ = client.Close()
		})
	}
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close() // twice is no harm
	}
	p.conns = nil
}

type hearing struct {
	to   io.Writer
	deaf *atomic.Bool
}

func (h hearing) Write(b []byte) (int, error) {
	if h.deaf.Load() {
		return len(b), nil
	}
	return h.to.Write(b)
}

// The server has the messages, and the writer does not know: they must be there
// once, whether the writer notices in the same session or in the next.
func TestAcknowledgementsAreLost(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	between := startProxy(t, srv.server.ClientURL())
	nc, err := nats.Connect("nats://"+between.listener.Addr().String(), stream.ConnectOptions(t.Name())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	w := replicatest.NewWriter(1)
	store := replicatest.NewStore(w, 0)
	w.Seal()
	p, _ := publish(t, nc, w, fast())
	tail(t, srv.connect(), w.ID, store, fast())
	converge(t, w, store)
	direct := srv.connect()
	for round := range 4 {
		eventually(t, "the writer knows", func() bool { s := p.Stats(); return s.InCharge && s.Published == w.Head() })
		between.deaf.Store(true)
		before := lastSequence(t, direct)
		sealMany(w, 3)
		p.Wake()
		// Where the writer was about to look at the stream, it has given up instead.
		eventually(t, "the server has a message", func() bool { return lastSequence(t, direct) > before || !p.Stats().InCharge })
		if round%2 == 0 {
			between.cut()
		}
		between.deaf.Store(false)
		converge(t, w, store)
	}
	all := events(t, srv.connect())
	isOneChain(t, all)
	sealed := 0
	for _, e := range all {
		if _, ok := e.Body.(*replica.Sealed); ok {
			sealed++
		}
	}
	if head := int(w.Head().Number); sealed != head {
		t.Errorf("%d blocks in the stream, want %d", sealed, head)
	}
	s := p.Stats()
	t.Logf("%d messages, sent again %d, epochs and turns %d", s.Messages, s.Retries, s.Unwinds)
}

func lastSequence(t *testing.T, nc *nats.Conn) uint64 {
	t.Helper()
	return theStream(t, nc).CachedInfo().State.LastSeq
}
