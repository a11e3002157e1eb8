// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	requestsTotal = prometheus.NewDesc("glimpse_rpc_requests_total",
		"Calls answered, by method, class of the block asked for and error code (0 is success).",
		[]string{"method", "tag", "code"}, nil)
	requestSeconds = prometheus.NewDesc("glimpse_rpc_request_seconds",
		"Time to answer a call, without the transport.",
		[]string{"method", "tag"}, nil)
)

// Describe implements prometheus.Collector.
func (c *calls) Describe(to chan<- *prometheus.Desc) {
	to <- requestsTotal
	to <- requestSeconds
}

// Collect implements prometheus.Collector. Only what was seen is shown: most
// methods take one or two of the classes and never fail in most of the ways.
func (c *calls) Collect(to chan<- prometheus.Metric) {
	for _, m := range c.snapshot() {
		for tag := range m.byTag {
			if s := m.byTag[tag].Load(); s != nil {
				collect(to, m.name, tagNames[tag], s.totals())
			}
		}
	}
}

func (c *calls) snapshot() []*MethodMetrics {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*MethodMetrics, 0, len(c.methods))
	for _, m := range c.methods {
		all = append(all, m)
	}
	return all
}

func collect(to chan<- prometheus.Metric, method, tag string, t totals) {
	for i, n := range t.codes {
		if n > 0 {
			to <- prometheus.MustNewConstMetric(requestsTotal, prometheus.CounterValue, float64(n), method, tag, codeNames[i])
		}
	}
	var count uint64
	cumulative := make(map[float64]uint64, bounds)
	for i, n := range t.buckets {
		count += n
		if i < bounds {
			cumulative[bound(i).Seconds()] = count
		}
	}
	to <- prometheus.MustNewConstHistogram(requestSeconds, count, t.sum.Seconds(), cumulative, method, tag)
}

// bound returns the upper bound of a bucket.
func bound(i int) time.Duration { return firstBound << i }
