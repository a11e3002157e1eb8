// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"

	"github.com/urfave/cli/v3"

	"glimpse/node"
)

func (p *program) serveCommand() *cli.Command {
	return &cli.Command{
		Name:   "serve",
		Usage:  "answer JSON-RPC from a datadir",
		Flags:  serveFlags(),
		Action: p.serve,
	}
}

func serveFlags() []cli.Flag { return slices.Concat(storeFlags(), serviceFlags(), publishFlags()) }

func (p *program) serve(ctx context.Context, c *cli.Command) error {
	if err := noArguments(c); err != nil {
		return err
	}
	config := node.ServeConfig{Service: service(c), Store: store(c), Publish: publish(c), Log: p.log(c)}
	return runService(ctx, &config.Service, func(ctx context.Context) error { return node.Serve(ctx, config) })
}
