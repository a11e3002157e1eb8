// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"glimpse/chain"
)

// Load is what the JSON-RPC server has to do at one moment, and what it would
// not do since it was made.
type Load struct {
	InFlight  int   // requests being answered
	Waiting   int   // of these, the ones that wait for a newer snapshot
	HeldBytes int64 // of long requests and answers

	HTTPConnections      int
	WebSocketConnections int
	Subscriptions        int

	Refused       Refusals
	SlowConsumers uint64 // subscribers disconnected for not keeping up
}

// Refusals is how many requests and connections were turned away before they
// were looked at.
type Refusals struct {
	InFlight    uint64 // too many requests under way
	Memory      uint64 // too much memory held for requests and answers
	Connections uint64 // too many connections
	Key         uint64 // no API key, or one that is not known
	Rate        uint64 // more requests than the key may send
}

// StoreSizes is how big the store is, in bytes but for Readers.
type StoreSizes struct {
	Disk           uint64 // all files, the log among them
	Log            uint64
	Memtables      uint64
	Cache          uint64
	CompactionDebt uint64
	Readers        int // moments of the store that are held
}

// gauges collects what is looked up when somebody scrapes.
type gauges struct {
	health *Health
	load   func() Load
	store  func() (StoreSizes, error)

	replication func() Replication
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("glimpse_"+name, help, labels, nil)
}

var (
	rpcInFlight      = desc("rpc_in_flight", "Requests being answered.")
	rpcWaiting       = desc("rpc_waiting", "Requests that wait for the snapshot that Glimpse-At-Least names.")
	rpcConnections   = desc("rpc_connections", "Open connections.", "transport")
	rpcSubscriptions = desc("rpc_subscriptions", "Subscriptions of all WebSocket connections.")
	rpcHeld          = desc("rpc_held_bytes", "Memory held for long requests and answers.")
	rpcRefused       = desc("rpc_refused_total", "Requests and connections turned away before they were looked at.", "reason")
	rpcSlowConsumers = desc("rpc_slow_consumers_total", "Subscribers disconnected because they did not keep up.")

	ready        = desc("ready", "1 where /readyz without parameters answers 200, 0 where it does not.")
	headBlock    = desc("head_block", "Number of the block; absent where there is none.", "tag")
	headAge      = desc("head_age_seconds", "Time since a new latest block arrived, or since the start where none has.")
	headAgeLimit = desc("head_age_limit_seconds", "Age of the head from which the node is unready; absent where no blocks are expected.")
	headLag      = desc("head_lag_seconds", "Time since the timestamp of the latest block.")
	feedAge      = desc("feed_age_seconds", "Time since a flashblock arrived, or since the start where none has; absent without a feed.")
	feedAgeLimit = desc("feed_age_limit_seconds", "Silence of the feed from which the node is unready; absent without a feed.")
	pendingBlock = desc("pending_block", "Number of the newest pre-confirmed block; absent while nothing is pre-confirmed.")
	pendingIndex = desc("pending_index", "Index of the last flashblock in the newest pre-confirmed block; absent while nothing is pre-confirmed.")
	pendingSince = desc("pending_age_seconds", "Time since a flashblock was applied; absent while nothing is pre-confirmed.")

	storeBytes   = desc("store_bytes", "Size of the store. The log is part of disk.", "kind")
	storeReaders = desc("store_readers", "Moments of the store that requests hold, the current one among them.")
	storeDebt    = desc("store_compaction_debt_bytes", "Estimate of what compactions still have to rewrite.")
)

// Describe implements prometheus.Collector.
func (g gauges) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		rpcInFlight, rpcWaiting, rpcConnections, rpcSubscriptions, rpcHeld, rpcRefused, rpcSlowConsumers,
		ready, headBlock, headAge, headAgeLimit, headLag, feedAge, feedAgeLimit, pendingBlock, pendingIndex, pendingSince,
		storeBytes, storeReaders, storeDebt,
	} {
		to <- d
	}
	for _, d := range replicationDescs() {
		to <- d
	}
}

// Collect implements prometheus.Collector. Each source is asked once, so that
// what belongs together is of one moment.
func (g gauges) Collect(to chan<- prometheus.Metric) {
	collectHealth(sink(to), g.health.Facts(), time.Now())
	if g.load != nil {
		collectLoad(sink(to), g.load())
	}
	if g.store != nil {
		if s, err := g.store(); err == nil {
			collectStore(sink(to), s)
		}
	}
	if g.replication != nil {
		collectReplication(sink(to), g.replication(), time.Now())
	}
}

// A sink takes what was looked up.
type sink chan<- prometheus.Metric

func (to sink) put(d *prometheus.Desc, value float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func (to sink) count(d *prometheus.Desc, value uint64, labels ...string) {
	to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
}

func collectLoad(to sink, l Load) {
	to.put(rpcInFlight, float64(l.InFlight))
	to.put(rpcWaiting, float64(l.Waiting))
	to.put(rpcConnections, float64(l.HTTPConnections), "http")
	to.put(rpcConnections, float64(l.WebSocketConnections), "ws")
	to.put(rpcSubscriptions, float64(l.Subscriptions))
	to.put(rpcHeld, float64(l.HeldBytes))
	to.count(rpcRefused, l.Refused.InFlight, "in-flight")
	to.count(rpcRefused, l.Refused.Memory, "memory")
	to.count(rpcRefused, l.Refused.Connections, "connections")
	to.count(rpcRefused, l.Refused.Key, "key")
	to.count(rpcRefused, l.Refused.Rate, "rate")
	to.count(rpcSlowConsumers, l.SlowConsumers)
}

func collectStore(to sink, s StoreSizes) {
	to.put(storeBytes, float64(s.Disk), "disk")
	to.put(storeBytes, float64(s.Log), "log")
	to.put(storeBytes, float64(s.Memtables), "memtables")
	to.put(storeBytes, float64(s.Cache), "cache")
	to.put(storeReaders, float64(s.Readers))
	to.put(storeDebt, float64(s.CompactionDebt))
}

func collectHealth(to sink, f Facts, now time.Time) {
	to.is(ready, Judge(f, Query{}, now).Ready())
	to.put(headAge, f.Blocks.silence(f.Started, now).Seconds())
	if f.Blocks.Limit > 0 {
		to.put(headAgeLimit, f.Blocks.Limit.Seconds())
	}
	if f.Feed.Limit > 0 {
		to.put(feedAgeLimit, f.Feed.Limit.Seconds())
	}
	if f.Feed.Limit > 0 || !f.Feed.Last.IsZero() {
		to.put(feedAge, f.Feed.silence(f.Started, now).Seconds())
	}
	if f.Heads != nil {
		collectHeads(to, f, now)
	}
}

func collectHeads(to sink, f Facts, now time.Time) {
	h := f.Heads
	to.put(headBlock, number(h.Latest.Number), "latest")
	to.put(headBlock, number(h.Oldest), "oldest")
	if h.Safe != nil {
		to.put(headBlock, number(h.Safe.Number), "safe")
	}
	if h.Finalized != nil {
		to.put(headBlock, number(h.Finalized.Number), "finalized")
	}
	to.put(headLag, now.Sub(h.Sealed).Seconds())
	if p := h.Pending; p != nil {
		to.put(pendingBlock, number(p.Number))
		to.put(pendingIndex, float64(p.Index))
		to.put(pendingSince, pendingAge(f, now).Seconds())
	}
}

func number(n chain.Number) float64 { return float64(n) }
