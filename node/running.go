// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"glimpse/archive"
	"glimpse/ethapi"
	"glimpse/head"
	"glimpse/jsonrpc"
	"glimpse/ops"
	"glimpse/watch"
)

// A service is what every node that answers requests has: its endpoints, its
// limits, and what an operator sees of it.
type service struct {
	config    *Service
	log       *slog.Logger
	published *head.Publisher
	health    *ops.Health
	metrics   *ops.Metrics
	keys      *keyring // nil where everybody is answered
	watcher   *ethapi.Watcher
	stored    atomic.Pointer[archive.DB] // the store that requests are answered from; nil before there is one

	// publishing tells replicas, and tailing is what a replica is told; nil where
	// there are none, and where this is none.
	publishing *publishing
	tailing    func() ops.Tailing

	answering atomic.Pointer[answering] // nil before run
}

// answering is what answers requests.
type answering struct {
	server *jsonrpc.Server
	api    *ethapi.API
}

// expectations are the longest silences of a healthy node; zero is any.
type expectations struct {
	blocks, feed time.Duration

	replica func() ops.ReplicaFacts // nil where the node is none
}

// newService returns the service of a node that answers from published. The store
// may be nil, of a node that has to get one first.
func newService(c *Service, db *archive.DB, published *head.Publisher, expect expectations, log *slog.Logger) (*service, error) {
	if c.MaxBlockAge > 0 {
		expect.blocks = c.MaxBlockAge
	}
	s := &service{config: c, log: log, published: published}
	s.watcher = watch.New(func() ethapi.WatchedSnapshot { return published.Acquire() }, watch.Options{})
	s.stored.Store(db)
	s.health = ops.NewHealth(ops.HealthOptions{BlockLimit: expect.blocks, FeedLimit: expect.feed, Heads: s.heads, Replica: expect.replica})
	s.metrics = ops.NewMetrics(ops.MetricsOptions{
		Version: Version, Health: s.health, Load: s.load, Replication: s.replication,
		Store: func() (ops.StoreSizes, error) { return storeSizes(s.stored.Load()) },
	})
	if c.Keys != "" {
		var err error
		if s.keys, err = openKeyring(c.Keys); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// publishTo makes the service one that tells replicas, where c says so. Dir is
// where the store is.
func (s *service) publishTo(c *Publish, dir string, db *archive.DB) (err error) {
	if c.To != "" {
		s.publishing, err = openPublishing(c, dir, db, s.log)
	}
	return err
}

// close ends what newService and publishTo began, when run has returned.
func (s *service) close() { s.publishing.close() }

// endpoints are where a service listens; nil is nowhere.
type endpoints struct{ http, websocket, ops net.Listener }

// listen opens all endpoints or none.
func (s *service) listen(ctx context.Context) (e endpoints, err error) {
	if e, err = s.listenForRequests(ctx); err != nil {
		return e, err
	}
	if err = s.config.Ops.listen(ctx, &e.ops); err != nil {
		return endpoints{}, errors.Join(err, e.close())
	}
	return e, nil
}

// listenForRequests opens all endpoints but the operations port, or none.
func (s *service) listenForRequests(ctx context.Context) (e endpoints, err error) {
	if err = s.config.HTTP.listen(ctx, &e.http); err != nil {
		return endpoints{}, err
	}
	if err = s.config.WebSocket.listen(ctx, &e.websocket); err != nil {
		return endpoints{}, errors.Join(err, e.close())
	}
	if e.http == nil && e.websocket == nil {
		return endpoints{}, errors.Join(errors.New("neither HTTP nor WebSocket has an address"), e.close())
	}
	return e, nil
}

func (e *endpoints) close() (err error) {
	for _, l := range []net.Listener{e.http, e.websocket, e.ops} {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
	}
	return err
}

// listen opens an endpoint. It leaves l alone where e is nowhere.
func (e Endpoint) listen(ctx context.Context, l *net.Listener) (err error) {
	if e.Addr == "" {
		return nil
	}
	*l, err = listen(ctx, e)
	return err
}

func listen(ctx context.Context, e Endpoint) (net.Listener, error) {
	address := net.JoinHostPort(e.Addr, strconv.Itoa(e.Port))
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return l, nil
}

// run answers on e by the methods of c until ctx ends, and runs parts with it; the
// first to end ends all. When ctx ends, the node says that it is not ready, goes on
// for the drain time, and then stops. The operations port closes last; where e has
// none, it is the caller's.
func (s *service) run(ctx context.Context, e endpoints, c ethapi.Config, parts ...func(context.Context) error) error {
	s.equip(&c)
	api := ethapi.New(c)
	server := jsonrpc.NewServer(api.Notifying(s.watcher), s.options())
	s.answering.Store(&answering{server, api})
	ctx, cancel := s.drain(ctx)
	defer cancel()
	parts = append(parts, s.watch, s.reload)
	if s.publishing != nil {
		parts = append(parts, s.publishing.run)
	}
	if e.websocket != nil {
		s.log.Info("websocket listening", "addr", e.websocket.Addr().String())
		parts = append(parts, func(ctx context.Context) error { return s.cutOff(server.ServeWebSocket(ctx, e.websocket)) })
	}
	stopOps := s.serveOps(e.ops, cancel)
	if e.http != nil {
		parts = append(parts, func(ctx context.Context) error { return s.cutOff(server.Serve(ctx, e.http)) })
		s.log.Info("json-rpc listening", "addr", e.http.Addr().String())
	}
	err := runAll(ctx, parts...)
	s.log.Info("json-rpc stopped")
	return errors.Join(err, stopOps())
}

// cutOff makes a line of the log of requests that did not end in time: that is
// what the shutdown timeout is for, and no failure.
func (s *service) cutOff(err error) error {
	if errors.Is(err, jsonrpc.ErrCutOff) {
		s.log.Warn("not all requests ended in time", "err", err)
		return nil
	}
	return err
}

// drain returns a context that ends the drain time after ctx does.
func (s *service) drain(ctx context.Context) (context.Context, context.CancelFunc) {
	drained, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		defer cancel()
		s.health.Drain()
		s.log.Info("stopping", "drain", s.config.DrainTime)
		select {
		case <-time.After(s.config.DrainTime):
		case <-drained.Done():
		}
	})
	return drained, func() {
		stop()
		cancel()
	}
}

// serveOps serves the operations port until the function that it returns is
// called, which gives its error. One that fails stops the node.
func (s *service) serveOps(l net.Listener, fail func()) (stop func() error) {
	if l == nil {
		return func() error { return nil }
	}
	s.log.Info("operations listening", "addr", l.Addr().String())
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	var err error
	running.Go(func() {
		err = ops.Serve(ctx, l, ops.Options{Metrics: s.metrics, Health: s.health, Version: Version, Pprof: s.config.Pprof})
		if ctx.Err() == nil {
			fail()
		}
	})
	return func() error {
		cancel()
		running.Wait()
		return err
	}
}

func (s *service) watch(ctx context.Context) error { return untilDone(ctx, s.watcher.Run(ctx)) }

// reload reads the keys again whenever it is asked to.
func (s *service) reload(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.config.Reload:
		}
		if s.keys == nil {
			s.log.Info("nothing to reload: no API keys are configured")
			continue
		}
		n, err := s.keys.load()
		if err != nil {
			s.log.Error("API keys not reloaded, those from before stay", "err", err)
			continue
		}
		s.log.Info("API keys reloaded", "keys", n)
	}
}
