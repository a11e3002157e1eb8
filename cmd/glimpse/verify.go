// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/urfave/cli/v3"

	"glimpse/node"
)

func verifyCommand(log *slog.Logger, stdout, stderr io.Writer) *cli.Command {
	return &cli.Command{
		Name:  "verify",
		Usage: "check a whole datadir and print a digest of its content",
		Flags: []cli.Flag{datadirFlag(), cacheFlag()},
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := noArguments(c); err != nil {
				return err
			}
			progress := newProgress(log, stderr)
			r, err := node.Verify(ctx, node.VerifyConfig{Store: store(c), Log: log, Progress: progress.checked})
			progress.finish()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(stdout, "head     %s\nstate    blocks %d to %d, root %s\nstored   %d slot versions, %d account versions, %d codes, %d trie nodes\ndigest   %x\n",
				r.Head, r.Oldest, r.Head.Number, root(r), r.Slots, r.Accounts, r.Codes, r.Side, r.Digest)
			return err
		},
	}
}

func root(r node.Report) string {
	if r.Root == [32]byte{} {
		return "not checked"
	}
	return r.Root.String()
}
