// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"

	"github.com/urfave/cli/v3"

	"glimpse/node"
)

func (p *program) followCommand() *cli.Command {
	return &cli.Command{
		Name:  "follow",
		Usage: "follow a chain that another node has, and answer JSON-RPC from it",
		Description: "The store begins at the newest block. State from before is read through from the\n" +
			"upstream when it is asked for, and kept.",
		Flags:  followFlags(),
		Action: p.follow,
	}
}

func followFlags() []cli.Flag {
	return slices.Concat(storeFlags(), serviceFlags(), publishFlags(), []cli.Flag{
		&cli.StringSliceFlag{Name: "upstream", Usage: "`URL` of a node of the chain, http or ws; several are tried in turn"},
		&cli.StringSliceFlag{Name: "feed", Usage: "WebSocket `URL` of a feed of flashblocks; several are followed at once"},
		&cli.StringFlag{Name: "chain", Usage: "auto, the name of a chain that is built in, or a `FILE` that describes it", Value: "auto"},
		&cli.StringFlag{Name: "engine", Usage: "auto, execute, access-list or trace: where what a block changed comes from", Value: "auto", Validator: oneOf("auto", "execute", "access-list", "trace")},
		&cli.BoolFlag{Name: "verify-proofs", Usage: "take no state from the upstream without a proof"},
		&cli.BoolFlag{Name: "forward", Usage: "ask the upstream for methods that are not served here"},
		pendingAgeFlag(),
	})
}

func (p *program) follow(ctx context.Context, c *cli.Command) error {
	if err := noArguments(c); err != nil {
		return err
	}
	config := node.FollowConfig{
		Service: service(c), Store: store(c), Publish: publish(c),
		Upstreams: nonEmpty(c.StringSlice("upstream")), Feeds: nonEmpty(c.StringSlice("feed")),
		Chain: c.String("chain"), Engine: c.String("engine"),
		VerifyProofs: c.Bool("verify-proofs"), Forward: c.Bool("forward"), PendingMaxAge: c.Duration("pending.max-age"),
		Log: p.log(c),
	}
	return runService(ctx, &config.Service, func(ctx context.Context) error { return node.Follow(ctx, config) })
}
