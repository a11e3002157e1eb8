// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"glimpse/node"
)

func (p *program) devCommand() *cli.Command {
	return &cli.Command{
		Name:   "dev",
		Usage:  "run an embedded chain with pre-confirmations; what glimpse does without a command",
		Flags:  devFlags(),
		Action: p.dev,
	}
}

func devFlags() []cli.Flag {
	return slices.Concat(commonFlags(), serviceFlags(), publisherFlags(), publishFlags(), []cli.Flag{
		&cli.StringFlag{Name: "datadir", Usage: "directory of the archive; without it the chain is in memory"},
		cacheFlag(cacheMB),
		&cli.StringFlag{Name: "genesis", Usage: "geth-format genesis `FILE` in place of the built-in one"},
		pendingAgeFlag(),
		&cli.DurationFlag{Name: "dev.block-time", Usage: "`TIME` between two blocks", Value: 2 * time.Second, Validator: positive},
		&cli.DurationFlag{Name: "dev.flashblock-time", Usage: "`TIME` between two flashblocks; 0 for none", Value: 200 * time.Millisecond, Validator: notNegative},
		&cli.Uint64Flag{Name: "dev.safe-lag", Usage: "how many `BLOCKS` safe is behind latest", Value: 4},
		&cli.Uint64Flag{Name: "dev.finalized-lag", Usage: "how many `BLOCKS` finalized is behind latest", Value: 8},
	})
}

func (p *program) dev(ctx context.Context, c *cli.Command) error {
	if err := noArguments(c); err != nil {
		return err
	}
	config := node.DevConfig{
		Service: service(c), Store: store(c), Publish: publish(c), Genesis: c.String("genesis"), PendingMaxAge: c.Duration("pending.max-age"),
		BlockTime: c.Duration("dev.block-time"), FlashblockTime: c.Duration("dev.flashblock-time"),
		SafeLag: c.Uint64("dev.safe-lag"), FinalizedLag: c.Uint64("dev.finalized-lag"),
		FeedAddr: c.String("dev.feed-addr"), FeedPort: c.Int("dev.feed-port"), FeedCompression: c.String("dev.feed-compression"),
		Log: p.log(c), Out: p.stdout,
	}
	return runService(ctx, &config.Service, func(ctx context.Context) error { return node.Dev(ctx, config) })
}
