// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"glimpse/node"
)

// commonFlags are those of every command that does something.
func commonFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "config", Usage: "TOML `FILE` with flags"},
		&cli.StringFlag{Name: "log.format", Usage: "text or json", Value: "text", Validator: oneOf("text", "json")},
		&cli.StringFlag{Name: "log.level", Usage: "debug, info, warn or error", Value: "info", Validator: oneOf("debug", "info", "warn", "error")},
	}
}

// storeFlags are those of a command that needs an archive on disk.
func storeFlags() []cli.Flag { return storeFlagsWith(cacheMB) }

func storeFlagsWith(cache int) []cli.Flag {
	return append(commonFlags(), &cli.StringFlag{Name: "datadir", Usage: "directory of the archive", Required: true}, cacheFlag(cache))
}

const (
	cacheMB = 256

	// Of what an import writes, trie nodes most of all, much is replaced soon: with
	// more memory less of it is sorted into the store only to be thrown away.
	importCacheMB = 1024
)

func cacheFlag(value int) cli.Flag {
	return &cli.IntFlag{Name: "cache", Usage: "memory for the store, in `MB`", Value: value, Validator: atLeast(8)}
}

// everyFlag returns the flags of all commands, each name once.
func everyFlag() (all []cli.Flag) {
	seen := make(map[string]bool)
	for _, f := range slices.Concat(devFlags(), serveFlags(), followFlags(), replicaFlags(), replayFlags(), importFlags(), storeFlags()) {
		if !seen[name(f)] {
			seen[name(f)] = true
			all = append(all, f)
		}
	}
	return all
}

func name(f cli.Flag) string { return f.Names()[0] }

// nonEmpty drops what an empty list in the environment or in a file leaves.
func nonEmpty(list []string) []string {
	return slices.DeleteFunc(append([]string{}, list...), func(s string) bool { return s == "" })
}

func store(c *cli.Command) node.Store {
	return node.Store{Datadir: c.String("datadir"), CacheMB: c.Int("cache")}
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

func oneOf(values ...string) func(string) error {
	return func(value string) error {
		if !slices.Contains(values, value) {
			return fmt.Errorf("%q is none of %q", value, values)
		}
		return nil
	}
}

func positive(d time.Duration) error {
	if d <= 0 {
		return errors.New("must be more than 0")
	}
	return nil
}

func notNegative(d time.Duration) error {
	if d < 0 {
		return errors.New("must not be negative")
	}
	return nil
}
