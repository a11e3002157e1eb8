// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"

	"glimpse/bench/floor"
	"glimpse/bench/workload"
)

// floorCommand runs the floor as a process of its own.
const floorCommand = "floor"

var floorListens = map[string]*regexp.Regexp{"rpc": regexp.MustCompile(`^listening (\S+)`)}

func serveFloor(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet(floorCommand, flag.ContinueOnError)
	dir := flags.String("chain", "", "directory of the chain")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chain, err := workload.Open(*dir)
	if err != nil {
		return err
	}
	server, err := floor.New(chain)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { l.Close() })()
	if _, err := fmt.Fprintln(stdout, "listening", l.Addr()); err != nil {
		return err
	}
	return server.Serve(l)
}

func (c *config) startFloor(ctx context.Context, chain string) (*peer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, err := start(ctx, command{
		name: floorName, program: self, args: []string{floorCommand, "-chain", chain},
		logs: filepath.Dir(chain), cores: c.serverCores(), awaited: floorListens,
	})
	if err != nil {
		return nil, err
	}
	return &peer{name: floorName, addr: p.said["rpc"], server: p}, nil
}
