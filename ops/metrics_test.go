// SPDX-License-Identifier: Apache-2.0

package ops_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"glimpse/chain"
	"glimpse/ops"
)

// gather returns every value of a scrape by name and labels, as in
// `glimpse_head_block{tag="latest"}`. Histograms are there with their count and
// sum, and each bucket under its bound.
func gather(t testing.TB, m *ops.Metrics) map[string]float64 {
	t.Helper()
	families, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]float64)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, l := range metric.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			put := func(suffix string, value float64, more ...string) {
				key := family.GetName() + suffix
				if all := append(labels, more...); len(all) > 0 {
					key += "{" + strings.Join(all, ",") + "}"
				}
				values[key] = value
			}
			if h := metric.GetHistogram(); h != nil {
				put("_count", float64(h.GetSampleCount()))
				put("_sum", h.GetSampleSum())
				for _, b := range h.GetBucket() {
					put("_bucket", float64(b.GetCumulativeCount()), fmt.Sprintf(`le="%g"`, b.GetUpperBound()))
				}
				continue
			}
			put("", metric.GetGauge().GetValue()+metric.GetCounter().GetValue())
		}
	}
	return values
}

func expectValues(t *testing.T, m *ops.Metrics, want map[string]float64) {
	t.Helper()
	got := gather(t, m)
	for key, value := range want {
		v, ok := got[key]
		switch {
		case math.IsNaN(value) && ok:
			t.Errorf("%s: got %g, want it absent", key, v)
		case !math.IsNaN(value) && (!ok || math.Abs(v-value) > 1e-9):
			t.Errorf("%s: got %g (there: %v), want %g", key, v, ok, value)
		}
	}
}

var absent = math.NaN()

func TestCallsAreCountedByMethodTagAndCode(t *testing.T) {
	m := newWorld(ops.HealthOptions{}).metrics
	slot := m.Method("eth_getStorageAt")
	slot.Observe(ops.TagLatest, 0, 60*time.Microsecond)
	slot.Observe(ops.TagLatest, 0, 40*time.Microsecond)
	slot.Observe(ops.TagLatest, -32000, 20*time.Second)
	slot.Observe(ops.TagPending, 4444, time.Millisecond)
	slot.Observe(ops.TagPending, -12345, -time.Millisecond)
	m.Method("").Observe(ops.TagNone, -32601, 0)
	m.Method("not\xffutf-8").Observe(ops.TagClass(200), -32601, 0)
	expectValues(t, m, map[string]float64{
		`glimpse_rpc_requests_total{code="0",method="eth_getStorageAt",tag="latest"}`:             2,
		`glimpse_rpc_requests_total{code="-32000",method="eth_getStorageAt",tag="latest"}`:        1,
		`glimpse_rpc_requests_total{code="4444",method="eth_getStorageAt",tag="pending"}`:         1,
		`glimpse_rpc_requests_total{code="other",method="eth_getStorageAt",tag="pending"}`:        1,
		`glimpse_rpc_requests_total{code="-32601",method="unknown",tag="none"}`:                   2,
		`glimpse_rpc_requests_total{code="0",method="eth_getStorageAt",tag="pending"}`:            absent,
		`glimpse_rpc_request_seconds_count{method="eth_getStorageAt",tag="latest"}`:               3,
		`glimpse_rpc_request_seconds_sum{method="eth_getStorageAt",tag="latest"}`:                 20.0001,
		`glimpse_rpc_request_seconds_sum{method="eth_getStorageAt",tag="pending"}`:                0.001,
		`glimpse_rpc_request_seconds_bucket{method="eth_getStorageAt",tag="latest",le="5e-05"}`:   1,
		`glimpse_rpc_request_seconds_bucket{method="eth_getStorageAt",tag="latest",le="0.0001"}`:  2,
		`glimpse_rpc_request_seconds_bucket{method="eth_getStorageAt",tag="latest",le="13.1072"}`: 2,
	})
}

func TestADurationIsInTheFirstBucketThatHoldsIt(t *testing.T) {
	for i, bound := 0, 50*time.Microsecond; i < 19; i, bound = i+1, bound*2 {
		t.Run(bound.String(), func(t *testing.T) {
			m := newWorld(ops.HealthOptions{}).metrics
			m.Method("m").Observe(ops.TagNone, 0, bound)
			m.Method("m").Observe(ops.TagNone, 0, bound+1)
			key := fmt.Sprintf(`glimpse_rpc_request_seconds_bucket{method="m",tag="none",le="%g"}`, bound.Seconds())
			expectValues(t, m, map[string]float64{key: 1})
			if next := 2 * bound; i < 18 {
				key = fmt.Sprintf(`glimpse_rpc_request_seconds_bucket{method="m",tag="none",le="%g"}`, next.Seconds())
				expectValues(t, m, map[string]float64{key: 2})
			}
		})
	}
}

func TestEveryKnownCodeHasItsOwnLabel(t *testing.T) {
	m := newWorld(ops.HealthOptions{}).metrics
	codes := []int{
		0, 3, 4, 4444, -32000, -32001, -32002, -32003, -32004, -32005,
		-32600, -32601, -32602, -32603, -32700, -38026, -39001,
	}
	want := make(map[string]float64)
	for i, code := range codes {
		for range i + 1 {
			m.Method("m").Observe(ops.TagHash, code, 0)
		}
		want[fmt.Sprintf(`glimpse_rpc_requests_total{code="%d",method="m",tag="hash"}`, code)] = float64(i + 1)
	}
	want[`glimpse_rpc_requests_total{code="other",method="m",tag="hash"}`] = absent
	expectValues(t, m, want)
}

func TestClassOfASelector(t *testing.T) {
	tests := []struct {
		selector chain.Selector
		want     string
	}{
		{chain.Selector{}, "latest"},
		{chain.Latest, "latest"},
		{chain.Pending, "pending"},
		{chain.Safe, "safe"},
		{chain.Finalized, "finalized"},
		{chain.Earliest, "earliest"},
		{chain.ByNumber(0), "number"},
		{chain.ByHash(chain.Hash{}), "hash"},
	}
	for _, tt := range tests {
		if got := ops.ClassOf(tt.selector).String(); got != tt.want {
			t.Errorf("%+v: got %s, want %s", tt.selector, got, tt.want)
		}
	}
}

// Whoever asks for the counters of names that callers send must not be able to
// fill the memory.
func TestMethodsAreBounded(t *testing.T) {
	m := newWorld(ops.HealthOptions{}).metrics
	known := m.Method("eth_getCode")
	for i := range 10_000 {
		m.Method(fmt.Sprint("m", i)).Observe(ops.TagNone, 0, 0)
	}
	if m.Method("eth_getCode") != known {
		t.Error("a method that was there has other counters now")
	}
	methods := 0
	for key := range gather(t, m) {
		if strings.HasPrefix(key, "glimpse_rpc_requests_total{") {
			methods++
		}
	}
	if methods > 256 {
		t.Errorf("%d methods, want at most 256", methods)
	}
	if got := gather(t, m)[`glimpse_rpc_requests_total{code="0",method="unknown",tag="none"}`]; got < 9_000 {
		t.Errorf("unknown: got %g calls, want the rest of 10000", got)
	}
}

func TestNoCallIsLostBetweenCores(t *testing.T) {
	const workers, each = 8, 5_000
	m := newWorld(ops.HealthOptions{}).metrics
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			h := m.Method("m")
			for range each {
				h.Observe(ops.TagNumber, 0, time.Millisecond)
			}
		})
	}
	wg.Go(func() {
		// No counter may go back from one scrape to the next.
		const key = `glimpse_rpc_request_seconds_count{method="m",tag="number"}`
		for before := 0.0; before < workers*each/2; {
			now := gather(t, m)[key]
			if now < before {
				t.Errorf("%g calls after %g", now, before)
			}
			before = now
		}
	})
	wg.Wait()
	expectValues(t, m, map[string]float64{
		`glimpse_rpc_requests_total{code="0",method="m",tag="number"}`: workers * each,
		`glimpse_rpc_request_seconds_count{method="m",tag="number"}`:   workers * each,
		`glimpse_rpc_request_seconds_sum{method="m",tag="number"}`:     workers * each * 0.001,
	})
}

// The first call of a class makes its counters, and several may be the first.
func TestNoFirstCallIsLost(t *testing.T) {
	const workers, methods = 4, 250
	m := newWorld(ops.HealthOptions{}).metrics
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range methods * len(tags) {
				m.Method(fmt.Sprint("m", i/len(tags))).Observe(tags[i%len(tags)], 0, 0)
			}
		})
	}
	wg.Wait()
	for key, n := range gather(t, m) {
		if strings.HasPrefix(key, "glimpse_rpc_requests_total{") && n != workers {
			t.Errorf("%s: got %g, want %d", key, n, workers)
		}
	}
}

var tags = []ops.TagClass{
	ops.TagNone, ops.TagLatest, ops.TagPending, ops.TagSafe, ops.TagFinalized, ops.TagEarliest, ops.TagNumber, ops.TagHash,
}

func TestObserveAllocatesNothing(t *testing.T) {
	h := newWorld(ops.HealthOptions{}).metrics.Method("m")
	h.Observe(ops.TagLatest, 0, 0)
	if n := testing.AllocsPerRun(1000, func() { h.Observe(ops.TagLatest, 0, time.Microsecond) }); n != 0 {
		t.Errorf("got %g allocations, want none", n)
	}
}

func TestEventsAreCounted(t *testing.T) {
	m := newWorld(ops.HealthOptions{}).metrics
	expectValues(t, m, map[string]float64{
		`glimpse_ready`:                  1,
		`glimpse_head_age_limit_seconds`: absent,
	})
	m.Block()
	m.Reorg(3)
	m.Flashblock(outcome("applied"))
	m.Flashblock(outcome("unheard of"))
	m.Revoked(5)
	m.Revoked(-1)
	m.StoreReadFailed(errors.New("disk"))
	expectValues(t, m, map[string]float64{
		`glimpse_blocks_total`:                           1,
		`glimpse_reorgs_total`:                           1,
		`glimpse_reorg_depth_blocks_sum`:                 3,
		`glimpse_flashblocks_total{outcome="applied"}`:   1,
		`glimpse_flashblocks_total{outcome="other"}`:     1,
		`glimpse_flashblocks_total{outcome="discarded"}`: 0,
		`glimpse_preconfirmations_revoked_total`:         5,
		`glimpse_store_read_errors_total`:                1,
		`glimpse_ready`:                                  0,
	})
}

func TestHeadsAndAgesAreOfTheMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(ops.HealthOptions{BlockLimit: time.Minute})
		pass(2 * time.Second)
		expectValues(t, w.metrics, map[string]float64{
			`glimpse_ready`:                       1,
			`glimpse_head_block{tag="latest"}`:    100,
			`glimpse_head_block{tag="oldest"}`:    7,
			`glimpse_head_block{tag="safe"}`:      absent,
			`glimpse_head_block{tag="finalized"}`: absent,
			`glimpse_head_age_seconds`:            2,
			`glimpse_head_age_limit_seconds`:      60,
			`glimpse_head_lag_seconds`:            5,
			`glimpse_feed_age_seconds`:            absent,
			`glimpse_feed_age_limit_seconds`:      absent,
			`glimpse_pending_block`:               absent,
			`glimpse_pending_index`:               absent,
			`glimpse_pending_age_seconds`:         absent,
			`glimpse_rpc_in_flight`:               absent,
			`glimpse_store_bytes{kind="disk"}`:    absent,
		})
		w.metrics.Block()
		w.metrics.FeedMessage()
		w.metrics.Flashblock(outcome("applied"))
		pass(time.Second)
		w.metrics.FeedMessage()
		pass(time.Second)
		w.heads.Safe, w.heads.Finalized = &chain.Ref{Number: 98}, &chain.Ref{Number: 90}
		w.heads.Pending = &ops.Preconfirmed{Number: 101, Index: 0}
		expectValues(t, w.metrics, map[string]float64{
			`glimpse_head_block{tag="safe"}`:      98,
			`glimpse_head_block{tag="finalized"}`: 90,
			`glimpse_head_age_seconds`:            2,
			`glimpse_feed_age_seconds`:            1,
			`glimpse_pending_block`:               101,
			`glimpse_pending_index`:               0,
			`glimpse_pending_age_seconds`:         2,
		})
		w.heads = nil
		expectValues(t, w.metrics, map[string]float64{
			`glimpse_ready`:                    0,
			`glimpse_head_block{tag="latest"}`: absent,
			`glimpse_head_lag_seconds`:         absent,
		})
	})
}

func TestLoadAndStoreAreAskedFor(t *testing.T) {
	sizes, failure := ops.StoreSizes{Disk: 1, Log: 2, Memtables: 3, Cache: 4, CompactionDebt: 5, Readers: 6}, error(nil)
	m := ops.NewMetrics(ops.MetricsOptions{
		Health: ops.NewHealth(ops.HealthOptions{}),
		Load: func() ops.Load {
			return ops.Load{
				InFlight: 1, Waiting: 2, HTTPConnections: 3, WebSocketConnections: 4, Subscriptions: 5, HeldBytes: 6,
				Refused:       ops.Refusals{InFlight: 7, Memory: 8, Connections: 9, Key: 10, Rate: 11},
				SlowConsumers: 12,
			}
		},
		Store: func() (ops.StoreSizes, error) { return sizes, failure },
	})
	expectValues(t, m, map[string]float64{
		`glimpse_rpc_in_flight`:                           1,
		`glimpse_rpc_waiting`:                             2,
		`glimpse_rpc_connections{transport="http"}`:       3,
		`glimpse_rpc_connections{transport="ws"}`:         4,
		`glimpse_rpc_subscriptions`:                       5,
		`glimpse_rpc_held_bytes`:                          6,
		`glimpse_rpc_refused_total{reason="in-flight"}`:   7,
		`glimpse_rpc_refused_total{reason="memory"}`:      8,
		`glimpse_rpc_refused_total{reason="connections"}`: 9,
		`glimpse_rpc_refused_total{reason="key"}`:         10,
		`glimpse_rpc_refused_total{reason="rate"}`:        11,
		`glimpse_rpc_slow_consumers_total`:                12,
		`glimpse_store_bytes{kind="disk"}`:                1,
		`glimpse_store_bytes{kind="log"}`:                 2,
		`glimpse_store_bytes{kind="memtables"}`:           3,
		`glimpse_store_bytes{kind="cache"}`:               4,
		`glimpse_store_compaction_debt_bytes`:             5,
		`glimpse_store_readers`:                           6,
	})
	failure = errors.New("closed")
	expectValues(t, m, map[string]float64{
		`glimpse_store_bytes{kind="disk"}`:    absent,
		`glimpse_store_compaction_debt_bytes`: absent,
		`glimpse_rpc_in_flight`:               1,
	})
}

func TestTwoNodesInOneProcessCountApart(t *testing.T) {
	one, two := newWorld(ops.HealthOptions{}).metrics, newWorld(ops.HealthOptions{}).metrics
	one.Block()
	expectValues(t, two, map[string]float64{`glimpse_blocks_total`: 0})
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "glimpse_") {
			t.Errorf("%s is in the default registry", f.GetName())
		}
	}
}

func BenchmarkObserve(b *testing.B) {
	h := newWorld(ops.HealthOptions{}).metrics.Method("eth_getStorageAt")
	b.Run("one core", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			h.Observe(ops.TagLatest, 0, 70*time.Microsecond)
		}
	})
	b.Run("all cores", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				h.Observe(ops.TagLatest, 0, 70*time.Microsecond)
			}
		})
	})
}

// What the same costs with the counters of the Prometheus client, resolved in
// advance.
func BenchmarkObserveWithTheClient(b *testing.B) {
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "c"}, []string{"method", "tag", "code"}).
		WithLabelValues("eth_getStorageAt", "latest", "0")
	histogram := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "h", Buckets: prometheus.ExponentialBuckets(50e-6, 2, 19),
	}, []string{"method", "tag"}).WithLabelValues("eth_getStorageAt", "latest")
	observe := func() {
		counter.Inc()
		histogram.Observe((70 * time.Microsecond).Seconds())
	}
	b.Run("one core", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			observe()
		}
	})
	b.Run("all cores", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				observe()
			}
		})
	})
}

func BenchmarkScrape(b *testing.B) {
	m := newWorld(ops.HealthOptions{}).metrics
	for i := range 60 {
		m.Method(fmt.Sprint("m", i)).Observe(ops.TagLatest, 0, 0)
		m.Method(fmt.Sprint("m", i)).Observe(ops.TagPending, -32000, 0)
	}
	for b.Loop() {
		gather(b, m)
	}
}
