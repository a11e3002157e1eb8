// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"glimpse/bench/load"
	"glimpse/bench/workload"
)

// A session is one run of the program.
type session struct {
	config *config
	dir    string
	log    io.Writer
	chain  *workload.Chain
	peers  []*peer // glimpse first
	live   *peer
	report report
}

// bench measures everything and reports it.
func bench(ctx context.Context, c *config, stdout, stderr io.Writer) error {
	s := &session{config: c, dir: c.data, log: stderr}
	s.report.config = c
	if err := s.makeDir(); err != nil {
		return err
	}
	if c.data == "" && !c.keep {
		defer os.RemoveAll(s.dir)
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	if err := s.measure(ctx); err != nil {
		return err
	}
	if err := s.grow(ctx); err != nil {
		return err
	}
	if _, err := io.WriteString(stdout, s.report.markdown()); err != nil {
		return err
	}
	if c.out == "" {
		return nil
	}
	return s.report.write(c.out)
}

func (s *session) makeDir() (err error) {
	if s.dir != "" {
		return os.MkdirAll(s.dir, 0o700)
	}
	if s.dir, err = os.MkdirTemp("", "glimpse-bench-"); err == nil && s.config.keep {
		s.say("data in %s", s.dir)
	}
	return err
}

func (s *session) say(format string, args ...any) { fmt.Fprintf(s.log, format+"\n", args...) }

func (s *session) compares(name string) bool { return slices.Contains(s.config.peers, name) }

// prepare makes the chain and has it imported.
func (s *session) prepare(ctx context.Context) (err error) {
	c := s.config
	dir := filepath.Join(s.dir, "chain")
	s.say("chain of %d blocks, %d contracts, %d slots", c.shape.Blocks, c.shape.Contracts, c.shape.Slots)
	if s.chain, err = s.makeChain(ctx, dir); err != nil {
		return err
	}
	s.report.chain = s.chain.Description
	s.report.imports = make(map[string]importResult)
	s.say("glimpse import")
	if s.report.imports[glimpseName], err = c.importGlimpse(ctx, dir, filepath.Join(s.dir, glimpseName)); err != nil {
		return err
	}
	if s.compares(gethName) {
		s.say("geth import")
		s.report.imports[gethName], err = c.importGeth(ctx, dir, filepath.Join(s.dir, gethName))
	}
	return err
}

// makeChain makes a chain in a directory, and drops stores of another one there.
func (s *session) makeChain(ctx context.Context, dir string) (*workload.Chain, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	made, err := workload.Generate(ctx, dir, s.config.seed, s.config.shape)
	if err != nil {
		return nil, err
	}
	if made {
		for _, name := range []string{glimpseName, gethName} {
			if err := os.RemoveAll(filepath.Join(s.dir, name+".json")); err != nil {
				return nil, err
			}
		}
	}
	return workload.Open(dir)
}

// measure runs all servers, compares them and measures them.
func (s *session) measure(ctx context.Context) (err error) {
	defer func() { s.stop() }()
	if err := s.start(ctx); err != nil {
		return err
	}
	p := newPools(s.chain, s.config.seed)
	kinds := []kind{latest, historical, pending, absent, code, batch, valuesPresent, valuesAbsent}
	// The live one has nothing but empty blocks on top yet.
	everybody := append(slices.Clone(s.peers), s.live)
	compared, err := check(ctx, p, everybody, kinds)
	if err != nil {
		return err
	}
	s.report.compared = compared
	s.say("%d requests answered by all alike", compared)
	if err := s.config.startFeed(ctx, s.live, s.chain.Dir); err != nil {
		return err
	}
	for _, peer := range s.peers {
		if err := settle(ctx, peer.server); err != nil {
			return err
		}
	}
	if s.report.figures, err = newMeter(s.config, p, s.peers, s.live, s.log).run(ctx); err != nil {
		return err
	}
	if s.config.profile != "" {
		if err := s.profile(ctx, p); err != nil {
			return err
		}
	}
	return s.finish()
}

// start starts all servers.
func (s *session) start(ctx context.Context) (err error) {
	c := s.config
	add := func(p *peer, err error) error {
		if err == nil {
			s.peers = append(s.peers, p)
		}
		return err
	}
	store := filepath.Join(s.dir, glimpseName)
	if s.live, err = c.serveLiveGlimpse(ctx, s.chain.Dir, store); err != nil {
		return err
	}
	if err := add(c.serveGlimpse(ctx, store)); err != nil {
		return err
	}
	for _, name := range c.peers {
		s.say("start %s", name)
		switch name {
		case gethName:
			err = add(c.serveGeth(ctx, filepath.Join(s.dir, gethName), c.shape.Blocks))
		case anvilName:
			err = add(c.startAnvil(ctx, s.chain))
		case floorName:
			err = add(c.startFloor(ctx, s.chain.Dir))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// finish stops all servers and looks at what they leave.
func (s *session) finish() error {
	s.report.memory = make(map[string]int64)
	for _, p := range s.peers {
		s.report.memory[p.name] = p.memory
	}
	for _, p := range s.stop() {
		s.say("%s did not end cleanly", p.name)
	}
	s.report.disk = make(map[string]int64)
	for name := range s.report.imports {
		n, err := onDisk(filepath.Join(s.dir, name))
		if err != nil {
			return err
		}
		s.report.disk[name] = n
	}
	return nil
}

// stop ends all servers that run, and returns those that did not end cleanly.
func (s *session) stop() (unclean []*peer) {
	all := s.peers
	if s.live != nil {
		all = append(all, s.live)
	}
	s.peers, s.live = nil, nil
	for _, p := range all {
		if !p.stop() {
			unclean = append(unclean, p)
		}
	}
	return unclean
}

// profile asks glimpse where it spends its time under load.
func (s *session) profile(ctx context.Context, p *pools) error {
	const seconds = 5
	ours := s.peers[0]
	if err := ours.resume(ctx); err != nil {
		return err
	}
	taken := make(chan error, 1)
	go func() {
		taken <- download(ctx, "http://"+ours.server.said["ops"]+"/debug/pprof/profile?seconds="+strconv.Itoa(seconds), s.config.profile)
	}()
	_, err := load.Run(ctx, ours.addr, p.pool(poolKey{kind: latest}), load.Options{
		Connections: manyConnections, Duration: (seconds + 1) * time.Second, Core: s.config.generatorCore(),
	})
	if err != nil {
		return err
	}
	return <-taken
}

func download(ctx context.Context, url, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("profile: %s", resp.Status)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, resp.Body); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
