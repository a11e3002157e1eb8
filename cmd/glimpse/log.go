// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"

	"github.com/urfave/cli/v3"
)

// log returns the log that the flags of c ask for.
func (p *program) log(c *cli.Command) *slog.Logger {
	var level slog.Level
	// The flag's validator knows fewer names than this does.
	_ = level.UnmarshalText([]byte(c.String("log.level")))
	options := &slog.HandlerOptions{Level: level}
	if c.String("log.format") == "json" {
		return slog.New(slog.NewJSONHandler(p.stderr, options))
	}
	return slog.New(slog.NewTextHandler(p.stderr, options))
}
