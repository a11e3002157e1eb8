// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"

	"github.com/urfave/cli/v3"

	"glimpse/node"
)

func serveCommand(log *slog.Logger) *cli.Command {
	return &cli.Command{
		Name:  "serve",
		Usage: "answer JSON-RPC from a datadir",
		Flags: append(httpFlags(), datadirFlag(), cacheFlag()),
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := noArguments(c); err != nil {
				return err
			}
			return node.Serve(ctx, serveConfig(c, log))
		},
	}
}

func serveConfig(c *cli.Command, log *slog.Logger) node.ServeConfig {
	return node.ServeConfig{
		Store:    store(c),
		HTTPAddr: c.String("http.addr"),
		HTTPPort: c.Int("http.port"),
		Log:      log,
	}
}
