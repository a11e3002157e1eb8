// SPDX-License-Identifier: Apache-2.0

// Command glimpse answers eth_getStorageAt and eth_getCode at any block of an
// Ethereum-like chain. README.md shows how to use it.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v3"

	"glimpse/node"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// A second signal ends the program at once, in case stopping takes long.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args, os.Stdout, os.Stderr))
}

// run is main with its surroundings given to it. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	p := &program{stdout: stdout, stderr: stderr}
	if err := p.command().Run(ctx, args); err != nil {
		fmt.Fprintln(stderr, "glimpse:", err)
		return 1
	}
	return 0
}

// A program is where the commands print to.
type program struct {
	stdout io.Writer // results
	stderr io.Writer // the log, progress and errors
}

// command returns the whole command line.
func (p *program) command() *cli.Command {
	root := &cli.Command{
		Name:  "glimpse",
		Usage: "storage and code of an Ethereum-like chain, at any block",
		Description: "Without a command, glimpse runs an embedded chain with pre-confirmations, to try\n" +
			"it out and to test against. README.md has requests to paste.\n\n" +
			"Every flag can also be given in the environment, --http.port as GLIMPSE_HTTP_PORT,\n" +
			"and in the file that --config names. A flag goes before the environment, and that\n" +
			"before the file.",
		Version:     node.Version,
		HideVersion: true, // there is a command for it
		Writer:      p.stdout,
		ErrWriter:   p.stderr,
		Flags:       devFlags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			// Not in Before, which runs for the other commands too.
			if _, err := configure(ctx, c); err != nil {
				return err
			}
			return p.dev(ctx, c)
		},
		Commands: []*cli.Command{
			p.devCommand(),
			p.genesisCommand(),
			p.importCommand(),
			p.exportCommand(),
			p.serveCommand(),
			p.followCommand(),
			p.replicaCommand(),
			p.recordCommand(),
			p.replayCommand(),
			p.verifyCommand(),
			p.versionCommand(),
		},
		// Errors are printed once, in run, and no library exits the process.
		ExitErrHandler: func(context.Context, *cli.Command, error) {},
		OnUsageError:   func(_ context.Context, _ *cli.Command, err error, _ bool) error { return err },
	}
	for _, c := range root.Commands {
		c.Before = configure
	}
	// It configures itself, to tell where each value comes from.
	root.Commands = append(root.Commands, p.configCommand())
	return root
}

// noArguments refuses what a command would otherwise ignore.
func noArguments(c *cli.Command) error {
	if c.Args().Present() {
		return fmt.Errorf("%s: unexpected argument %q", c.FullName(), c.Args().First())
	}
	return nil
}
