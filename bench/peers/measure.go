// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"time"

	"glimpse/bench/load"
	"glimpse/bench/table"
)

// A figure is what one peer does under one load: medians over the rounds.
type figure struct {
	throughputs    []float64 // requests per second, of each round
	p50, p99, p999 time.Duration
	cpu            time.Duration // of the server, for each request
	busy           float64       // the generator of the load, as a part of one processor
	failures       int           // of all rounds
}

// figures are by load and peer. What is absent was not measured.
type figures map[loadCase]map[string]*figure

// of returns the figure of a peer, or nil.
func (f figures) of(k kind, connections int, peer string) *figure {
	return f[loadCase{k, connections}][peer]
}

// A meter measures peers in turn.
type meter struct {
	config *config
	pools  *pools
	peers  []*peer // glimpse first
	live   *peer   // glimpse with a feed; nil where there is none
	log    io.Writer
	rounds map[loadCase]map[string][]*load.Result
}

func newMeter(c *config, p *pools, peers []*peer, live *peer, log io.Writer) *meter {
	return &meter{config: c, pools: p, peers: peers, live: live, log: log, rounds: make(map[loadCase]map[string][]*load.Result)}
}

// run measures all loads in all rounds. Peers take turns within a load, so that
// what the machine does otherwise meets all of them.
func (m *meter) run(ctx context.Context) (figures, error) {
	all := cases(m.config.connections)
	for _, c := range all {
		for _, p := range m.peers {
			if c.kind.askable(p.name) {
				m.pools.pool(keyFor(c.kind, p))
			}
		}
	}
	for _, p := range m.everybody() {
		if err := p.pause(); err != nil {
			return nil, err
		}
	}
	// One thread is to measure, and the collector is to find nothing to do.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	runtime.GC()
	for round := range m.config.rounds {
		for _, c := range inTurn(all) {
			for _, p := range m.peers {
				if !c.kind.askable(p.name) {
					continue
				}
				if p.name == glimpseName && c.kind.live() {
					p = m.live
				}
				if err := m.turn(ctx, c, p, uint64(round)); err != nil {
					return nil, fmt.Errorf("%s, %s, %d connections: %w", p.name, c.kind, c.connections, err)
				}
			}
		}
		fmt.Fprintf(m.log, "round %d of %d\n", round+1, m.config.rounds)
	}
	return m.medians(), nil
}

func (m *meter) everybody() []*peer {
	if m.live == nil {
		return m.peers
	}
	return append([]*peer{m.live}, m.peers...)
}

var errFailures = errors.New("answers are errors")

// turn measures one peer while all others wait.
func (m *meter) turn(ctx context.Context, c loadCase, p *peer, round uint64) error {
	if err := p.resume(ctx); err != nil {
		return err
	}
	r, err := load.Run(ctx, p.addr, m.pools.pool(keyFor(c.kind, p)), load.Options{
		Connections: c.connections, Warmup: m.config.warmup, Duration: m.config.seconds,
		Seed: m.config.seed + round, Core: m.config.generatorCore(), ServerCPU: p.cpu,
	})
	if err != nil {
		return err
	}
	if r.Answers == 0 {
		return fmt.Errorf("%w: %s", errFailures, r.FirstFailure)
	}
	if r.Failures > 0 {
		fmt.Fprintf(m.log, "%s, %s, %d connections: %d failures: %s\n", p.name, c.kind, c.connections, r.Failures, r.FirstFailure)
	}
	if m.rounds[c] == nil {
		m.rounds[c] = make(map[string][]*load.Result)
	}
	m.rounds[c][p.name] = append(m.rounds[c][p.name], r)
	return errors.Join(p.note(), p.pause())
}

func (m *meter) medians() figures {
	all := make(figures)
	for c, peers := range m.rounds {
		all[c] = make(map[string]*figure)
		for name, results := range peers {
			all[c][name] = median(results)
		}
	}
	return all
}

func median(results []*load.Result) *figure {
	over := func(get func(*load.Result) float64) float64 {
		var values []float64
		for _, r := range results {
			values = append(values, get(r))
		}
		return table.Median(values)
	}
	quantile := func(q float64) time.Duration {
		return time.Duration(over(func(r *load.Result) float64 { return float64(r.Latency.Quantile(q)) }))
	}
	f := &figure{
		p50: quantile(0.5), p99: quantile(0.99), p999: quantile(0.999),
		cpu:  time.Duration(over(func(r *load.Result) float64 { return float64(r.ServerCPU) / float64(r.Answers) })),
		busy: over(func(r *load.Result) float64 { return r.OwnCPU.Seconds() / r.Elapsed.Seconds() }),
	}
	for _, r := range results {
		f.throughputs = append(f.throughputs, r.Throughput())
		f.failures += r.Failures
	}
	return f
}

// throughput is not a number where there is no figure.
func (f *figure) throughput() float64 {
	if f == nil {
		return math.NaN()
	}
	return table.Median(f.throughputs)
}

// times is how many times as much f does as another: the median over the rounds, for
// a machine that is slower in one of them is so for both. It is not a number where
// there is no figure.
func (f *figure) times(other *figure) float64 {
	if f == nil || other == nil {
		return math.NaN()
	}
	var ratios []float64
	for i := range min(len(f.throughputs), len(other.throughputs)) {
		ratios = append(ratios, f.throughputs[i]/other.throughputs[i])
	}
	return table.Median(ratios)
}
