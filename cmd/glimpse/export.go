// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/urfave/cli/v3"

	"glimpse/node"
)

func (p *program) exportCommand() *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "write the blocks of a datadir to a file, as \"geth export\" does",
		ArgsUsage: "FILE",
		Flags:     storeFlags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			if c.Args().Len() != 1 {
				return errors.New("export: want one file")
			}
			return node.Export(ctx, node.ExportConfig{Store: store(c), File: c.Args().First(), Log: p.log(c)})
		},
	}
}

func (p *program) genesisCommand() *cli.Command {
	return &cli.Command{
		Name:  "genesis",
		Usage: "print the genesis of the embedded chain, for \"geth init\"",
		Action: func(_ context.Context, c *cli.Command) error {
			if err := noArguments(c); err != nil {
				return err
			}
			_, err := p.stdout.Write(node.DevGenesis())
			return err
		},
	}
}
