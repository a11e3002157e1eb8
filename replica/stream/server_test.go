// SPDX-License-Identifier: Apache-2.0

package stream_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"glimpse/chain"
	"glimpse/replica"
	"glimpse/replica/replicatest"
	"glimpse/replica/stream"
)

// patience is how long a test waits for what must happen.
const patience = time.Minute

// A natsServer is a real server in this process, which can be stopped and started
// again on its port and its files.
type natsServer struct {
	t       testing.TB
	options server.Options
	server  *server.Server
}

func startServer(t testing.TB) *natsServer {
	t.Helper()
	s := &natsServer{t: t, options: server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
	}}
	s.start()
	s.options.Port = s.server.Addr().(*net.TCPAddr).Port
	t.Cleanup(s.stop)
	return s
}

func (s *natsServer) start() {
	s.t.Helper()
	options := s.options
	srv, err := server.NewServer(&options)
	if err != nil {
		s.t.Fatal(err)
	}
	srv.Start()
	if !srv.ReadyForConnections(patience) {
		s.t.Fatal("the server does not start")
	}
	s.server = srv
}

func (s *natsServer) stop() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}

func (s *natsServer) connect() *nats.Conn {
	s.t.Helper()
	nc, err := nats.Connect(s.server.ClientURL(), stream.ConnectOptions(s.t.Name())...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(nc.Close)
	return nc
}

// fast are Settings with which tests need not wait.
func fast() stream.Settings {
	return stream.Settings{Timeout: 2 * time.Second, WholeEvery: 100 * time.Millisecond}
}

// A running part and how it ended.
type running struct {
	stop  context.CancelFunc
	ended chan error // holds the one error of Run
}

func run(t testing.TB, f func(context.Context) error) *running {
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{stop: cancel, ended: make(chan error, 1)}
	go func() { r.ended <- f(ctx) }()
	t.Cleanup(func() { r.end(t) })
	return r
}

// end stops the part and waits for it.
func (r *running) end(t testing.TB) error {
	t.Helper()
	r.stop()
	return r.wait(t)
}

// wait returns how the part ended by itself.
func (r *running) wait(t testing.TB) error {
	t.Helper()
	select {
	case err := <-r.ended:
		r.ended <- err
		return err
	case <-time.After(patience):
		t.Fatal("a part does not end")
		return nil
	}
}

func publish(t testing.TB, nc *nats.Conn, w *replicatest.Writer, s stream.Settings) (*stream.Publisher, *running) {
	t.Helper()
	p, err := stream.NewPublisher(nc, s, w.ID, w)
	if err != nil {
		t.Fatal(err)
	}
	return p, run(t, p.Run)
}

func tail(t testing.TB, nc *nats.Conn, id replica.Identity, store replica.Store, s stream.Settings) (*stream.Tail, *running) {
	t.Helper()
	tl, err := stream.NewTail(nc, s, id, replica.NewApplier(id, store, nil))
	if err != nil {
		t.Fatal(err)
	}
	return tl, run(t, tl.Run)
}

// A pair is a writer and its replica, both of which run on one server.
type pair struct {
	*natsServer
	writer    *replicatest.Writer
	store     *replicatest.Store
	publisher *stream.Publisher
	tail      *stream.Tail
}

// startPair returns a pair that is in step at a block above genesis.
func startPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{natsServer: startServer(t), writer: replicatest.NewWriter(1)}
	p.store = replicatest.NewStore(p.writer, 0)
	p.publisher, _ = publish(t, p.connect(), p.writer, fast())
	p.tail, _ = tail(t, p.connect(), p.writer.ID, p.store, fast())
	p.seal(t, 2)
	return p
}

// seal adds blocks and waits until the replica shows them.
func (p *pair) seal(t *testing.T, n int) {
	t.Helper()
	sealMany(p.writer, n)
	p.publisher.Wake()
	p.converge(t)
}

func (p *pair) converge(t *testing.T) {
	t.Helper()
	converge(t, p.writer, p.store)
}

// eventually waits until something holds, looking every few milliseconds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("%s: it does not happen", what)
		case <-tick.C:
		}
	}
}

// converge waits until readers of the store see what the writer is at.
func converge(t testing.TB, w *replicatest.Writer, s *replicatest.Store) {
	t.Helper()
	eventually(t, "the replica shows the writer's head", func() bool { return s.Shown().Head == w.Head() })
	c, err := w.Open()
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Sealed(w.Head().Number)
	if err == nil && s.Shown().Digest != b.Digest {
		t.Errorf("the replica has another digest at %s", b.Ref)
	}
}

// events reads all durable events of the stream, as a consumer would.
func events(t *testing.T, nc *nats.Conn) (all []*replica.Event) {
	t.Helper()
	st := theStream(t, nc)
	state := st.CachedInfo().State
	a := replica.Assembler{}
	for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
		m, err := st.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		f, err := replica.DecodeFrame(m.Data)
		if err != nil {
			t.Fatal(err)
		}
		if e, err := a.Add(f); err == nil {
			all = append(all, e)
		}
	}
	return all
}

// theStream is the one under test as the server has it.
func theStream(t *testing.T, nc *nats.Conn) jetstream.Stream {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	st, err := js.Stream(t.Context(), "glimpse")
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// isOneChain fails where events are not what a consumer needs: counted without a
// gap in each epoch, epochs that ascend, and blocks that follow each other.
func isOneChain(t *testing.T, all []*replica.Event) {
	t.Helper()
	var epoch, order uint64
	var at chain.Ref
	on := make(map[chain.Ref]bool)
	for i, e := range all {
		switch {
		case e.Epoch == epoch && e.Order == order+1, e.Epoch > epoch && e.Order == 1:
		default:
			t.Fatalf("event %d is %d.%d after %d.%d", i, e.Epoch, e.Order, epoch, order)
		}
		epoch, order = e.Epoch, e.Order
		switch b := e.Body.(type) {
		case *replica.Sealed:
			if b.Parent != at.Hash || b.Number != at.Number+1 {
				t.Fatalf("event %d: block %s does not follow %s", i, b.Ref, at)
			}
		case *replica.Unwound:
			if i > 0 && !on[b.To] {
				t.Fatalf("event %d goes on from %s, which was not there", i, b.To)
			}
		}
		at = e.At()
		on[at] = true
	}
}
