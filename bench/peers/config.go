// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"glimpse/internal/chaingen"
)

// Names of those that are compared.
const (
	glimpseName = "glimpse"
	gethName    = "geth"
	anvilName   = "anvil"
	floorName   = "floor"
)

// config is what the flags say.
type config struct {
	glimpse, geth, anvil string // paths of the programs
	peers                []string
	seed                 uint64
	shape                chaingen.StorageOptions
	anvilBlocks          int

	rounds          int
	seconds, warmup time.Duration
	connections     []int
	feedSize        int
	pin             string

	growth     []int
	growthGeth int

	data, out, profile string
	keep               bool
}

func parseConfig(args []string, stderr io.Writer) (*config, error) {
	c := new(config)
	f := flag.NewFlagSet("bench-peers", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&c.glimpse, "glimpse", "build/glimpse", "program `PATH`")
	f.StringVar(&c.geth, "geth", "build/geth", "program `PATH`")
	f.StringVar(&c.anvil, "anvil", "anvil", "program `PATH`")
	peers := f.String("peers", "geth,anvil,floor", "whom to compare glimpse with")
	f.Uint64Var(&c.seed, "seed", 1, "of the chain and of the requests")
	f.IntVar(&c.shape.Contracts, "contracts", 2000, "contracts of the chain, at least 10")
	f.IntVar(&c.shape.Slots, "slots", 300_000, "slots of all contracts, Zipf-distributed")
	f.IntVar(&c.shape.Blocks, "blocks", 20_000, "blocks of the chain")
	f.IntVar(&c.shape.Rewrites, "rewrites", 16, "slots that each block sets again")
	f.IntVar(&c.shape.Large, "large", 64, "contracts with 24 kB of code")
	f.IntVar(&c.anvilBlocks, "anvil-blocks", 32, "newest blocks that anvil executes; it begins with the state before them, since it keeps each state whole")
	f.IntVar(&c.rounds, "rounds", 11, "rounds, of which the median is taken")
	f.DurationVar(&c.seconds, "seconds", time.Second, "`TIME` of one measurement")
	f.DurationVar(&c.warmup, "warmup", 300*time.Millisecond, "`TIME` before one")
	connections := f.String("connections", "1,8,32,128", "numbers of connections for single requests")
	f.IntVar(&c.feedSize, "feed", 10, "transactions in each flashblock while pending is measured")
	f.StringVar(&c.pin, "pin", "both", "what keeps to a processor: none, generator, both")
	growth := f.String("growth", "1000,10000,100000,1000000", "sizes of the chains that show growth; empty for none")
	f.IntVar(&c.growthGeth, "growth-geth", 100_000, "the largest of them that geth loads")
	f.StringVar(&c.data, "data", "", "`DIR` to keep chain and stores in for the next run; without it they are temporary")
	f.BoolVar(&c.keep, "keep", false, "keep the temporary directory")
	f.StringVar(&c.out, "out", "", "`DIR` of performance.md and img to write to; empty prints only")
	f.StringVar(&c.profile, "profile", "", "`FILE` for a profile of glimpse under load of 32 connections")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if err := c.absolute(); err != nil {
		return nil, err
	}
	return c, c.complete(*peers, *connections, *growth)
}

// absolute makes paths good for processes that work elsewhere. A program without
// a directory is one to look for.
func (c *config) absolute() error {
	for _, path := range []*string{&c.glimpse, &c.geth, &c.anvil, &c.data} {
		if !strings.ContainsRune(*path, filepath.Separator) {
			continue
		}
		full, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = full
	}
	return nil
}

// complete understands lists and refuses what cannot be measured.
func (c *config) complete(peers, connections, growth string) (err error) {
	for _, p := range split(peers) {
		if !slices.Contains([]string{gethName, anvilName, floorName}, p) {
			return fmt.Errorf("-peers: %q is none of geth, anvil and floor", p)
		}
		c.peers = append(c.peers, p)
	}
	if c.connections, err = numbers(connections); err != nil {
		return fmt.Errorf("-connections: %w", err)
	}
	if c.growth, err = numbers(growth); err != nil {
		return fmt.Errorf("-growth: %w", err)
	}
	for _, n := range c.growth {
		if n < leastGrowth {
			return fmt.Errorf("-growth: %d is less than %d", n, leastGrowth)
		}
	}
	if !slices.Contains([]string{"none", "generator", "both"}, c.pin) {
		return fmt.Errorf("-pin: %q is none of none, generator and both", c.pin)
	}
	if c.pin != "none" && runtime.NumCPU() < 2 {
		c.pin = "none" // there is nothing to divide
	}
	switch {
	case len(c.connections) == 0:
		return errors.New("-connections: none")
	case c.shape.Contracts < 10 || c.shape.Large < 1:
		return errors.New("want at least 10 contracts, and one that is large")
	case c.anvilBlocks < 1 || c.anvilBlocks > c.shape.Blocks:
		return errors.New("-anvil-blocks: want at least one and no more than there are")
	case c.rounds < 1 || c.seconds <= 0 || c.warmup < 0 || c.feedSize < 0:
		return errors.New("-rounds and -seconds must be positive, -warmup and -feed not negative")
	}
	return nil
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

func numbers(list string) (all []int, err error) {
	for _, text := range split(list) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is not a positive number", text)
		}
		all = append(all, n)
	}
	return all, nil
}

// generatorCore is where the load comes from, or -1.
func (c *config) generatorCore() int {
	if c.pin == "none" {
		return -1
	}
	return runtime.NumCPU() - 1
}

// serverCores are where servers run; nil for anywhere.
func (c *config) serverCores() (cores []int) {
	if c.pin == "both" {
		for i := range runtime.NumCPU() - 1 {
			cores = append(cores, i)
		}
	}
	return cores
}
