// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"runtime"

	"github.com/urfave/cli/v3"

	"glimpse/node"
)

// importGarbage is the garbageFloor of an import. Executing blocks and hashing
// tries makes garbage without end, beside a heap that is mostly the cache of trie
// nodes: a fifth of the processor's time went into looking at that again.
const importGarbage = 128 << 20

func (p *program) importCommand() *cli.Command {
	return &cli.Command{
		Name:      "import",
		Usage:     "add blocks to a datadir",
		ArgsUsage: "FILE...",
		Description: "The files hold RLP blocks as \"geth export\" writes them, plain or gzip. Blocks that\n" +
			"are there already are skipped, so an interrupted import is resumed by running it again.",
		Flags: importFlags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			if !c.Args().Present() {
				return errors.New("import: no files given")
			}
			floor := make([]byte, importGarbage)
			defer runtime.KeepAlive(floor)

			log := p.log(c)
			progress := newProgress(log, p.stderr)
			err := node.Import(ctx, node.ImportConfig{
				Store: store(c), Genesis: c.String("genesis"), Files: c.Args().Slice(), Verify: c.String("verify"),
				Head: c.String("head"), Safe: c.String("safe"), Finalized: c.String("finalized"),
				KeepBlocks: c.Uint64("history.state"), KeepTime: c.Duration("history.time"),
				Log: log, Progress: progress.imported,
			})
			progress.finish()
			if errors.Is(err, context.Canceled) {
				return errors.New("import interrupted; run it again to go on")
			}
			return err
		},
	}
}

func importFlags() []cli.Flag {
	return append(storeFlagsWith(importCacheMB),
		&cli.StringFlag{Name: "genesis", Usage: "geth-format genesis `FILE`; needed for a new datadir"},
		&cli.StringFlag{Name: "verify", Usage: "what to compare with each header: root, receipts or off", Value: "root"},
		&cli.StringFlag{Name: "head", Usage: "end at this `BLOCK`, by number or hash; those above it are taken back"},
		&cli.StringFlag{Name: "safe", Usage: "call this `BLOCK` safe"},
		&cli.StringFlag{Name: "finalized", Usage: "call this `BLOCK` finalized"},
		&cli.Uint64Flag{Name: "history.state", Usage: "keep the state of this many `BLOCKS`; 0 keeps all"},
		&cli.DurationFlag{Name: "history.time", Usage: "keep the state of this much `TIME` before the head; 0 keeps all", Validator: notNegative},
	)
}
