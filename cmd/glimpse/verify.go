// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"glimpse/node"
)

func (p *program) verifyCommand() *cli.Command {
	return &cli.Command{
		Name:  "verify",
		Usage: "check a whole datadir and print a digest of its content",
		Flags: storeFlags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := noArguments(c); err != nil {
				return err
			}
			log := p.log(c)
			progress := newProgress(log, p.stderr)
			r, err := node.Verify(ctx, node.VerifyConfig{Store: store(c), Log: log, Progress: progress.checked})
			progress.finish()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.stdout, "head     %s\nstate    blocks %d to %d, root %s\nstored   %d slot versions, %d account versions, %d codes, %d trie nodes\ndigest   %x\ncontent  %s\n",
				r.Head, r.Oldest, r.Head.Number, root(r), r.Slots, r.Accounts, r.Codes, r.Side, r.Digest, r.Content)
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
