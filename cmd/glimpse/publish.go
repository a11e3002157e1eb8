// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/urfave/cli/v3"

	"glimpse/node"
)

// publishFlags are those of a command whose node may have replicas.
func publishFlags() []cli.Flag {
	return append(natsFlags(),
		&cli.StringFlag{Name: "publish", Usage: "`URLS` of NATS servers to tell replicas by, with commas between; embedded for one in this process; empty for no replicas"},
		&cli.StringFlag{Name: "nats.addr", Usage: "address of the embedded NATS server", Value: "127.0.0.1"},
		&cli.IntFlag{Name: "nats.port", Usage: "port of the embedded NATS server; 0 takes a free one", Value: 4222, Validator: isPort},
		&cli.IntFlag{Name: "nats.copies", Usage: "how many `SERVERS` keep the stream and the snapshots: 1, or 3 in a cluster", Value: 1, Validator: atLeast(1)},
		&cli.DurationFlag{Name: "nats.max-age", Usage: "how long the stream keeps blocks: a replica that was away for `TIME` needs a snapshot", Value: 24 * time.Hour, Validator: positive},
		&cli.IntFlag{Name: "nats.max-bytes", Usage: "how many `BYTES` of blocks the stream keeps", Value: 4 << 30, Validator: atLeast(1 << 10)},
		&cli.DurationFlag{Name: "snapshot-every", Usage: "`TIME` between two snapshots for replicas; 0 for none", Value: 10 * time.Minute, Validator: notNegative},
		&cli.IntFlag{Name: "snapshots-keep", Usage: "how many `SNAPSHOTS` are kept", Value: 2, Validator: atLeast(2)},
	)
}

// natsFlags are those that writers and replicas have in common.
func natsFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "nats.stream", Usage: "`NAME` of the stream; chains that share NATS servers need one each", Value: "glimpse"},
		&cli.StringFlag{Name: "nats.creds", Usage: "`FILE` of NATS credentials"},
		&cli.StringFlag{Name: "nats.ca", Usage: "`FILE` of the certificates that those of NATS servers are signed by; empty for those that the machine trusts"},
	}
}

func publish(c *cli.Command) node.Publish {
	return node.Publish{
		To: c.String("publish"), Listen: endpoint(c, "nats"), Credentials: c.String("nats.creds"), Authorities: c.String("nats.ca"),
		Stream: c.String("nats.stream"), Copies: c.Int("nats.copies"),
		MaxAge: c.Duration("nats.max-age"), MaxBytes: int64(c.Int("nats.max-bytes")),
		SnapshotEvery: c.Duration("snapshot-every"), SnapshotsKeep: c.Int("snapshots-keep"),
	}
}
