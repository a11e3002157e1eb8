// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"math"

	"glimpse/bench/table"
)

// A requirement is a ratio that glimpse is to reach.
type requirement struct {
	load     string
	to       string // what the ratio is to
	limit    float64
	atMost   bool // otherwise at least
	measured float64
}

func (r requirement) holds() bool {
	if r.atMost {
		return r.measured <= r.limit
	}
	return r.measured >= r.limit
}

func (r requirement) verdict() string {
	switch {
	case math.IsNaN(r.measured):
		return "not measured"
	case r.holds():
		return "yes"
	}
	return "**no**"
}

// requirements are what must be shown, with what was measured.
func (r *report) requirements() []requirement {
	n := reference(r.config.connections)
	ours := func(k kind) *figure { return r.figures.of(k, n, glimpseName) }
	// beside is the ratio of throughputs of one load, own that to our own latest.
	beside := func(k kind, peer string) float64 { return ours(k).times(r.figures.of(k, n, peer)) }
	own := func(k kind) float64 { return ours(k).times(ours(latest)) }
	// With a feed the node also executes, and its clients are also answered by
	// others: pending is compared with latest at the same time.
	live := ours(pending).times(ours(latestLive))
	const single = "eth_getStorageAt, "
	return []requirement{
		{single + "latest", "floor", 0.80, false, beside(latest, floorName)},
		{single + "latest", "geth", 6, false, beside(latest, gethName)},
		{single + "latest", "anvil", 2, false, beside(latest, anvilName)},
		{single + "random block", "geth", 8, false, beside(historical, gethName)},
		{single + "random block", "our own latest", 0.9, false, own(historical)},
		{single + "pending, live 200 ms feed", "our own latest meanwhile", 0.9, false, live},
		{single + "absent slot", "a present one, within 5 %", 0.95, false, own(absent)},
		{"batch of 100, reads per second", "geth", 8, false, beside(batch, gethName)},
		{"batch of 100, reads per second", "anvil", 1.5, false, beside(batch, anvilName)},
		{string(valuesPresent), "geth", 1, false, beside(valuesPresent, gethName)},
		{string(valuesAbsent), "geth", 1, false, beside(valuesAbsent, gethName)},
		{string(code), "geth", 2, false, beside(code, gethName)},
		{"p99 of eth_getStorageAt, latest", "geth", 0.25, true, r.p99Ratio(n)},
		{"import, blocks per second", "geth", 1.5, false, ratio(r.blocksPerSecond(glimpseName), r.blocksPerSecond(gethName))},
		{"bytes on disk", "geth", 0.5, true, r.diskRatio()},
	}
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}

func (r *report) p99Ratio(connections int) float64 {
	ours, theirs := r.figures.of(latest, connections, glimpseName), r.figures.of(latest, connections, gethName)
	if ours == nil || theirs == nil {
		return math.NaN()
	}
	return ratio(float64(ours.p99), float64(theirs.p99))
}

func (r *report) diskRatio() float64 {
	theirs, ok := r.disk[gethName]
	if !ok {
		return math.NaN()
	}
	return ratio(float64(r.disk[glimpseName]), float64(theirs))
}

func (r *report) blocksPerSecond(peer string) float64 {
	i, ok := r.imports[peer]
	if !ok {
		return math.NaN()
	}
	return ratio(float64(r.chain.Shape.Blocks), i.Elapsed.Seconds())
}

func (r *report) requirementTable() string {
	t := table.New("what, 32 connections", "beside", "wanted", "measured", "holds")
	for _, q := range r.requirements() {
		wanted := "at least " + table.Ratio(q.limit)
		if q.atMost {
			wanted = "at most " + table.Ratio(q.limit)
		}
		t.Add(q.load, q.to, wanted, table.Ratio(q.measured), q.verdict())
	}
	return t.String()
}
