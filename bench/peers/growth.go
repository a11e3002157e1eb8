// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"glimpse/bench/load"
	"glimpse/bench/workload"
	"glimpse/internal/chaingen"
)

// leastGrowth is the smallest chain that shows growth.
const leastGrowth = 1000

const growthPerBlock = 100 // slots or versions

// A growthPoint is what a chain of some size costs.
type growthPoint struct {
	chain workload.Description
	costs map[string]growthCost // by peer
}

type growthCost struct {
	imported importResult
	read     time.Duration // the median, over one connection
}

// growthShapes are chains of which one thing grows, by what it is.
var growthShapes = map[string]func(n int) chaingen.StorageOptions{
	"slots": func(n int) chaingen.StorageOptions {
		return chaingen.StorageOptions{Contracts: min(n/growthPerBlock, 2000), Slots: n, Blocks: n / growthPerBlock}
	},
	"versions": func(n int) chaingen.StorageOptions {
		return chaingen.StorageOptions{Contracts: 1, Slots: growthPerBlock, Blocks: n / growthPerBlock, Rewrites: growthPerBlock, Even: true}
	},
}

// grow measures chains of which one thing is larger and larger.
func (s *session) grow(ctx context.Context) error {
	s.report.growth = make(map[string][]growthPoint)
	for what, shape := range growthShapes {
		for _, n := range s.config.growth {
			s.say("growth: %d %s", n, what)
			point, err := s.growTo(ctx, filepath.Join(s.dir, fmt.Sprintf("growth-%s-%d", what, n)), n, shape(n))
			if err != nil {
				return fmt.Errorf("growth to %d %s: %w", n, what, err)
			}
			s.report.growth[what] = append(s.report.growth[what], point)
		}
	}
	return nil
}

func (s *session) growTo(ctx context.Context, dir string, n int, shape chaingen.StorageOptions) (p growthPoint, err error) {
	c, chainDir := s.config, filepath.Join(dir, "chain")
	if err := os.MkdirAll(chainDir, 0o700); err != nil {
		return p, err
	}
	if c.data == "" {
		defer os.RemoveAll(dir)
	}
	if _, err := workload.Generate(ctx, chainDir, c.seed, shape); err != nil {
		return p, err
	}
	chain, err := workload.Open(chainDir)
	if err != nil {
		return p, err
	}
	p = growthPoint{chain: chain.Description, costs: make(map[string]growthCost)}
	pools := newPools(chain, c.seed)
	store := filepath.Join(dir, glimpseName)
	imported, err := c.importGlimpse(ctx, chainDir, store)
	if err != nil {
		return p, err
	}
	server, err := c.serveGlimpse(ctx, store)
	if err != nil {
		return p, err
	}
	if p.costs[glimpseName], err = s.growthCost(ctx, pools, server, imported); err != nil {
		return p, err
	}
	if !s.compares(gethName) || n > c.growthGeth {
		return p, nil
	}
	store = filepath.Join(dir, gethName)
	if imported, err = c.importGeth(ctx, chainDir, store); err != nil {
		return p, err
	}
	if server, err = c.serveGeth(ctx, store, shape.Blocks); err != nil {
		return p, err
	}
	p.costs[gethName], err = s.growthCost(ctx, pools, server, imported)
	return p, err
}

// growthCost measures a server, and stops it.
func (s *session) growthCost(ctx context.Context, p *pools, server *peer, imported importResult) (growthCost, error) {
	defer server.stop()
	if err := settle(ctx, server.server); err != nil {
		return growthCost{}, err
	}
	r, err := load.Run(ctx, server.addr, p.pool(keyFor(historical, server)), load.Options{
		Connections: 1, Warmup: s.config.warmup, Duration: s.config.seconds, Seed: s.config.seed, Core: s.config.generatorCore(),
	})
	if err != nil {
		return growthCost{}, err
	}
	if r.Answers == 0 {
		return growthCost{}, fmt.Errorf("%w: %s", errFailures, r.FirstFailure)
	}
	return growthCost{imported: imported, read: r.Latency.Quantile(0.5)}, nil
}
