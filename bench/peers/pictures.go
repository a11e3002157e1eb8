// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"math"
	"time"

	"glimpse/bench/plot"
)

// A picture is a plot and where it goes.
type picture struct {
	title, file, svg string
}

func (r *report) pictures() []picture {
	all := []picture{
		r.throughputPicture("Single reads per second", "peers-throughput.svg", func(k kind) bool { return k.reads() == 1 }),
		r.throughputPicture("Reads per second, 100 in each request", "peers-throughput-many.svg", func(k kind) bool { return k.reads() > 1 }),
		r.latencyPicture(),
	}
	if len(r.grown()) == 0 {
		return all
	}
	for _, g := range []struct {
		title, file, unit string
		get               func(growthCost) float64
	}{
		{"Reading as chains grow", "peers-growth-read.svg", "p50 in µs, one connection", func(c growthCost) float64 { return microseconds(c.read) }},
		{"Disk as chains grow", "peers-growth-disk.svg", "bytes", func(c growthCost) float64 { return float64(c.imported.Disk) }},
		{"Import as chains grow", "peers-growth-import.svg", "seconds", func(c growthCost) float64 { return c.imported.Elapsed.Seconds() }},
	} {
		all = append(all, picture{g.title, g.file, r.growthLines(g.title, g.unit, g.get)})
	}
	return all
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// throughputPicture has a bar for each load of many connections that is included.
func (r *report) throughputPicture(title, file string, included func(kind) bool) picture {
	n := reference(r.config.connections)
	title = fmt.Sprintf("%s, %d connections", title, n)
	var groups []string
	series := make([]plot.Series, len(r.peers()))
	for i, p := range r.peers() {
		series[i].Name = p
	}
	r.eachCase(func(_ string, c loadCase) {
		if c.connections != n || c.kind == latestLive || !included(c.kind) {
			return
		}
		groups = append(groups, string(c.kind))
		for i, p := range r.peers() {
			series[i].Values = append(series[i].Values, r.figures.of(c.kind, n, p).throughput()*c.kind.reads())
		}
	})
	return picture{title, file, plot.Bars(title, groups, series)}
}

// latencyPicture has p99 of the simplest load over the number of connections.
func (r *report) latencyPicture() picture {
	const title = "p99 of eth_getStorageAt at latest"
	var x []float64
	for _, n := range r.config.connections {
		x = append(x, float64(n))
	}
	var series []plot.Series
	for _, p := range r.peers() {
		s := plot.Series{Name: p}
		for _, n := range r.config.connections {
			value := math.NaN()
			if f := r.figures.of(latest, n, p); f != nil {
				value = microseconds(f.p99)
			}
			s.Values = append(s.Values, value)
		}
		series = append(series, s)
	}
	return picture{title, "peers-p99.svg", plot.Lines(title, "connections", "µs", x, series)}
}

// growthLines has a line for each peer and each thing that grows.
func (r *report) growthLines(title, unit string, get func(growthCost) float64) string {
	var x []float64
	for _, n := range r.config.growth {
		x = append(x, float64(n))
	}
	var series []plot.Series
	for _, what := range r.grown() {
		for _, p := range []string{glimpseName, gethName} {
			s := plot.Series{Name: p + ", " + what}
			for _, point := range r.growth[what] {
				value := math.NaN()
				if cost, ok := point.costs[p]; ok {
					value = get(cost)
				}
				s.Values = append(s.Values, value)
			}
			series = append(series, s)
		}
	}
	return plot.Lines(title, "slots or versions", unit, x, series)
}
