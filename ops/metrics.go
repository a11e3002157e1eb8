// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// MetricsOptions are what Metrics shows beside what it counts.
type MetricsOptions struct {
	Version string

	// Health is told what arrives, and asked for heads and ages. It is
	// required.
	Health *Health

	// Load, Store and Replication are asked when somebody scrapes. They must be safe for
	// concurrent use, and must not panic. Where one is nil, or Store returns an
	// error, its metrics are absent.
	Load        func() Load
	Store       func() (StoreSizes, error)
	Replication func() Replication
}

// Metrics is everything that is counted about one node. Each has a registry of
// its own.
type Metrics struct {
	registry *prometheus.Registry
	health   *Health
	calls    *calls

	blocks          prometheus.Counter
	reorgs          prometheus.Counter
	reorgDepth      prometheus.Histogram
	flashblocks     *prometheus.CounterVec
	revoked         prometheus.Counter
	storeReadErrors prometheus.Counter
}

// NewMetrics returns Metrics in which nothing has been counted.
func NewMetrics(o MetricsOptions) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		health:   o.Health,
		calls:    newCalls(),

		blocks:          counter("blocks_total", "Sealed blocks that became the latest one."),
		reorgs:          counter("reorgs_total", "Reorganisations: blocks that were the latest gave way to others."),
		reorgDepth:      reorgDepths(),
		flashblocks:     counterVec("flashblocks_total", "What became of flashblocks, and of what they promised.", "outcome"),
		revoked:         counter("preconfirmations_revoked_total", "Transactions that were pre-confirmed and that their block was sealed without."),
		storeReadErrors: counter("store_read_errors_total", "Reads of the store that failed."),
	}
	for _, name := range outcomes {
		m.flashblocks.WithLabelValues(name)
	}
	m.registry.MustRegister(
		m.calls, m.blocks, m.reorgs, m.reorgDepth, m.flashblocks, m.revoked, m.storeReadErrors,
		gauges{health: o.Health, load: o.Load, store: o.Store, replication: o.Replication},
		buildInfo(o.Version),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: "glimpse_" + name, Help: help})
}

func counterVec(name, help, label string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "glimpse_" + name, Help: help}, []string{label})
}

func reorgDepths() prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "glimpse_reorg_depth_blocks",
		Help:    "How many blocks a reorganisation took back.",
		Buckets: []float64{1, 2, 3, 5, 8, 16, 32, 64, 128},
	})
}

func buildInfo(version string) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "glimpse_build_info", Help: "Always 1; the labels say what is running.",
		ConstLabels: prometheus.Labels{"version": version, "go": runtime.Version()},
	})
	g.Set(1)
	return g
}

// Method returns the counters of one method, to be kept: asking takes a lock. It
// is for methods that exist, never for names that callers send. The empty name
// stands for all methods that do not exist, and so does every name when there
// are 256 already.
func (m *Metrics) Method(name string) *MethodMetrics { return m.calls.method(name) }

// Block counts a sealed block that became the latest.
func (m *Metrics) Block() {
	m.blocks.Inc()
	now(&m.health.block)
}

// Reorg counts a reorganisation that took back depth blocks.
func (m *Metrics) Reorg(depth int) {
	m.reorgs.Inc()
	m.reorgDepth.Observe(float64(depth))
}

// FeedMessage notes that a message of the flashblocks feed arrived. Flashblock
// says what became of it.
func (m *Metrics) FeedMessage() { now(&m.health.message) }

// Flashblock counts what became of a flashblock, or of what was pre-confirmed
// when a block was sealed; a pending.Kind is such an outcome. One that is not
// known is counted as other.
func (m *Metrics) Flashblock(outcome fmt.Stringer) {
	name := known(outcome.String())
	m.flashblocks.WithLabelValues(name).Inc()
	if name == outcomeApplied {
		now(&m.health.applied)
	}
}

func known(outcome string) string {
	for _, name := range outcomes {
		if name == outcome {
			return name
		}
	}
	return other
}

// Revoked counts transactions that were pre-confirmed and then not sealed.
func (m *Metrics) Revoked(transactions int) { m.revoked.Add(float64(max(transactions, 0))) }

// StoreReadFailed counts a read that failed; it makes the node unready for a
// while. A block that is not here is not a failure.
func (m *Metrics) StoreReadFailed(err error) {
	m.storeReadErrors.Inc()
	m.health.storeReadFailed(err)
}

// Limits of a scrape: more than one Prometheus may scrape at once, but a crowd
// may not.
const (
	maxScrapes    = 4
	scrapeTimeout = 10 * time.Second
)

func (m *Metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
		Timeout:             scrapeTimeout,
	})
}
