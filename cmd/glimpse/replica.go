// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"glimpse/node"
)

func (p *program) replicaCommand() *cli.Command {
	return &cli.Command{
		Name:  "replica",
		Usage: "answer JSON-RPC as a writer does that publishes to NATS",
		Description: "An empty datadir begins with the newest snapshot. The replica executes nothing, and\n" +
			"is not ready until it has caught up.",
		Flags:  replicaFlags(),
		Action: p.replica,
	}
}

func replicaFlags() []cli.Flag {
	return slices.Concat(storeFlags(), serviceFlags(), natsFlags(), []cli.Flag{
		&cli.StringFlag{Name: "nats.url", Aliases: []string{"nats"}, Usage: "`URLS` of the NATS servers that the writer publishes to, with commas between"},
		&cli.StringFlag{Name: "writer", Usage: "`URL` of the writer's JSON-RPC, to send transactions on to; empty to take none"},
		&cli.DurationFlag{Name: "replica.max-lag", Usage: "unready after being behind the writer, or without an answer of NATS, for this `TIME`", Value: 5 * time.Second, Validator: positive},
		&cli.DurationFlag{Name: "replica.max-silence", Usage: "unready after hearing nothing of the writer for this `TIME` while NATS answers; 0 for any time", Value: time.Minute, Validator: notNegative},
	})
}

func (p *program) replica(ctx context.Context, c *cli.Command) error {
	if err := noArguments(c); err != nil {
		return err
	}
	config := node.ReplicaConfig{
		Service: service(c), Store: store(c),
		NATS: c.String("nats.url"), Credentials: c.String("nats.creds"), Authorities: c.String("nats.ca"), Stream: c.String("nats.stream"),
		Writer: c.String("writer"), MaxLag: c.Duration("replica.max-lag"), MaxSilence: c.Duration("replica.max-silence"), Log: p.log(c),
	}
	return runService(ctx, &config.Service, func(ctx context.Context) error { return node.Replica(ctx, config) })
}
