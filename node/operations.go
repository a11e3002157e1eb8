// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"time"

	"glimpse/archive"
	"glimpse/chain"
	"glimpse/ethapi"
	"glimpse/jsonrpc"
	"glimpse/ops"
)

// options are the limits of the transports.
func (s *service) options() jsonrpc.Options {
	c := s.config
	o := jsonrpc.Options{
		AllowedHosts: c.AllowedHosts, CORSOrigins: c.CORSOrigins, WebSocketOrigins: c.WebSocketOrigins,
		Headers: ethapi.Headers(), Namespace: ethapi.SubscriptionNamespace,
		MaxBody: c.MaxBody, MaxHeader: c.MaxHeader, MaxBatch: c.BatchLimit, MaxResponse: c.MaxResponse,
		MaxConnections: c.MaxConnections, MaxInFlight: c.MaxInFlight,
		HeaderTimeout: c.HeaderTimeout, BodyTimeout: c.BodyTimeout, WriteTimeout: c.WriteTimeout, IdleTimeout: c.IdleTimeout,
		OnPanic: func(value any, stack []byte) {
			s.log.Error("panic in a method", "value", value, "stack", string(stack))
		},
	}
	if c.ShutdownTimeout > 0 {
		// What is left of it after draining, and some of it for the store.
		o.ShutdownTimeout = max((c.ShutdownTimeout-c.DrainTime)*4/5, time.Millisecond)
	}
	if s.keys != nil {
		o.Gate = s.keys
	}
	return o
}

// equip completes the configuration of the methods with what all nodes have.
func (s *service) equip(c *ethapi.Config) {
	c.Version, c.Log = ClientVersion(), s.log
	c.Acquire = func() ethapi.Snapshot { return s.published.Acquire() }
	c.AcquireAtLeast = s.acquireAtLeast
	c.MaxWait, c.MaxCalls, c.Timeout, c.Slow = s.config.MaxWait, s.config.MaxCalls, s.config.Timeout, s.config.Slow
	c.Observer = observer{s.metrics}
}

func (s *service) acquireAtLeast(ctx context.Context, p chain.Progress) (ethapi.Snapshot, error) {
	l, err := s.published.AcquireAtLeast(ctx, p)
	if err != nil {
		return nil, err // and not a Snapshot that holds a nil *head.Lease
	}
	return l, nil
}

// An observer counts calls in the metrics.
type observer struct{ metrics *ops.Metrics }

func (o observer) Method(name string) ethapi.CallObserver {
	return methodObserver{o.metrics.Method(name)}
}
func (o observer) ReadFailed(err error) { o.metrics.StoreReadFailed(err) }

type methodObserver struct{ metrics *ops.MethodMetrics }

func (o methodObserver) Observe(block *chain.Selector, code int, took time.Duration) {
	class := ops.TagNone
	if block != nil {
		class = ops.ClassOf(*block)
	}
	o.metrics.Observe(class, code, took)
}

// heads tells what there is to answer from; false where there is nothing yet, and
// where the header of the latest block cannot be read, which no request could do
// either.
func (s *service) heads() (h ops.Heads, ok bool) {
	l, ok := s.published.TryAcquire()
	if !ok {
		return h, false
	}
	defer l.Release()
	header, err := headerAt(l, l.Latest().Number)
	if err != nil {
		s.metrics.StoreReadFailed(err)
		return h, false
	}
	h = ops.Heads{Latest: l.Latest(), Sealed: time.Unix(int64(header.Time), 0), Oldest: l.Oldest()}
	if r, ok := l.Safe(); ok {
		h.Safe = &r
	}
	if r, ok := l.Finalized(); ok {
		h.Finalized = &r
	}
	if p, ok := l.Pending(); ok {
		h.Pending = &ops.Preconfirmed{Number: chain.Number(p.Header.Number.Uint64()), Index: p.Index}
	}
	return h, true
}

// load tells what the servers have to do; nothing, before there are any.
func (s *service) load() ops.Load {
	a := s.answering.Load()
	if a == nil {
		return ops.Load{}
	}
	n := a.server.Stats()
	return ops.Load{
		InFlight: n.InFlight, Waiting: a.api.Waiting(), HeldBytes: n.Held,
		HTTPConnections: n.Connections - n.WebSocketConnections, WebSocketConnections: n.WebSocketConnections,
		Subscriptions: n.Subscriptions, SlowConsumers: n.SlowConsumers,
		Refused: ops.Refusals{
			InFlight: n.RefusedInFlight, Memory: n.RefusedMemory, Connections: n.RefusedConnections,
			Key: n.RefusedKey, Rate: n.RefusedRate,
		},
	}
}

// replication tells of replicas, or of being one.
func (s *service) replication() (r ops.Replication) {
	if s.publishing != nil {
		n := s.publishing.numbers()
		r.Publishing = &n
	}
	if s.tailing != nil {
		n := s.tailing()
		r.Tailing = &n
	}
	return r
}

func storeSizes(db *archive.DB) (ops.StoreSizes, error) {
	if db == nil {
		return ops.StoreSizes{}, archive.ErrEmpty
	}
	n, err := db.Sizes()
	return ops.StoreSizes{
		Disk: n.Disk, Log: n.Log, Memtables: n.Memtables, Cache: n.Cache,
		CompactionDebt: n.CompactionDebt, Readers: n.Readers,
	}, err
}
