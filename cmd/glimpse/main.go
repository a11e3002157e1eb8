// SPDX-License-Identifier: Apache-2.0

// Command glimpse answers eth_getStorageAt and eth_getCode at any block of an
// Ethereum-like chain. README.md shows how to use it.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
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
	app := newApp(stdout, stderr)
	if err := app.Run(ctx, args); err != nil {
		fmt.Fprintln(stderr, "glimpse:", err)
		return 1
	}
	return 0
}

func newApp(stdout, stderr io.Writer) *cli.Command {
	log := slog.New(slog.NewTextHandler(stderr, nil))
	return &cli.Command{
		Name:  "glimpse",
		Usage: "storage and code of an Ethereum-like chain, at any block",
		Description: "Without a command, glimpse runs an embedded chain with pre-confirmations, to try\n" +
			"it out and to test against. README.md has requests to paste.",
		Version:     node.Version,
		HideVersion: true, // there is a command for it
		Writer:      stdout,
		ErrWriter:   stderr,
		Flags:       devFlags(),
		Action:      func(ctx context.Context, c *cli.Command) error { return runDev(ctx, c, log, stdout) },
		Commands: []*cli.Command{
			devCommand(log, stdout),
			genesisCommand(stdout),
			importCommand(log, stderr),
			exportCommand(log),
			serveCommand(log),
			verifyCommand(log, stdout, stderr),
			versionCommand(stdout),
		},
		// Errors are printed once, in run, and no library exits the process.
		ExitErrHandler: func(context.Context, *cli.Command, error) {},
		OnUsageError:   func(_ context.Context, _ *cli.Command, err error, _ bool) error { return err },
	}
}

func datadirFlag() cli.Flag {
	return &cli.StringFlag{Name: "datadir", Usage: "directory of the archive", Required: true}
}

func cacheFlag() cli.Flag {
	return &cli.IntFlag{Name: "cache", Usage: "memory for the store, in `MB`", Value: 256, Validator: atLeast(8)}
}

func httpFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "http.addr", Usage: "address to answer JSON-RPC on", Value: "127.0.0.1"},
		&cli.IntFlag{Name: "http.port", Usage: "port to answer JSON-RPC on; 0 takes a free one", Value: 8545, Validator: isPort},
	}
}

func atLeast(least int) func(int) error {
	return func(n int) error {
		if n < least {
			return fmt.Errorf("%d is less than %d", n, least)
		}
		return nil
	}
}

func isPort(n int) error {
	if n < 0 || n > 65535 {
		return fmt.Errorf("%d is not a port", n)
	}
	return nil
}

func store(c *cli.Command) node.Store {
	return node.Store{Datadir: c.String("datadir"), CacheMB: c.Int("cache")}
}

// noArguments refuses what a command would otherwise ignore.
func noArguments(c *cli.Command) error {
	if c.Args().Present() {
		return fmt.Errorf("%s: unexpected argument %q", c.FullName(), c.Args().First())
	}
	return nil
}
