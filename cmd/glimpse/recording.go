// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"github.com/urfave/cli/v3"

	"glimpse/node"
)

func (p *program) recordCommand() *cli.Command {
	return &cli.Command{
		Name:      "record",
		Usage:     "write a feed of flashblocks to a file, until it is interrupted",
		ArgsUsage: "FILE",
		Flags:     recordFlags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			if c.Args().Len() != 1 {
				return errors.New("record: want one file")
			}
			return node.Record(ctx, node.RecordConfig{Feeds: nonEmpty(c.StringSlice("feed")), File: c.Args().First(), Log: p.log(c)})
		},
	}
}

func recordFlags() []cli.Flag {
	return append(commonFlags(), &cli.StringSliceFlag{Name: "feed", Usage: "WebSocket `URL` of a feed of flashblocks; several are followed at once"})
}

func (p *program) replayCommand() *cli.Command {
	return &cli.Command{
		Name:  "replay",
		Usage: "publish a recorded feed of flashblocks, from when the first client is there",
		Flags: replayFlags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := noArguments(c); err != nil {
				return err
			}
			return node.Replay(ctx, node.ReplayConfig{
				File: c.String("feed-file"), Speed: c.Float("replay.speed"), Interval: c.Duration("replay.interval"),
				Listen:      node.Endpoint{Addr: c.String("dev.feed-addr"), Port: c.Int("dev.feed-port")},
				Compression: c.String("dev.feed-compression"), Log: p.log(c),
			})
		},
	}
}

func replayFlags() []cli.Flag {
	return append(append(commonFlags(), publisherFlags()...),
		&cli.StringFlag{Name: "feed-file", Usage: "recorded feed, JSON lines"},
		&cli.FloatFlag{Name: "replay.speed", Usage: "times its own pace", Value: 1, Validator: fast},
		&cli.DurationFlag{Name: "replay.interval", Usage: "`TIME` between flashblocks where the file has no times", Value: 200 * time.Millisecond, Validator: positive},
	)
}

// publisherFlags are those of a command that publishes a feed.
func publisherFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "dev.feed-addr", Usage: "address of the flashblocks feed", Value: "127.0.0.1"},
		&cli.IntFlag{Name: "dev.feed-port", Usage: "port of the flashblocks feed; 0 takes a free one", Value: 8547, Validator: isPort},
		&cli.StringFlag{Name: "dev.feed-compression", Usage: "none, or brotli for binary frames", Value: "none", Validator: oneOf("none", "brotli")},
	}
}

func fast(speed float64) error {
	if speed < 0.001 {
		return errors.New("must be at least 0.001")
	}
	return nil
}
