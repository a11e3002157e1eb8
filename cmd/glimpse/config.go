// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/urfave/cli/v3"
)

// configCommand takes the flags of all other commands.
func (p *program) configCommand() *cli.Command {
	return &cli.Command{
		Name:  "config",
		Usage: "print the effective configuration, in the form that --config reads",
		Flags: everyFlag(),
		Action: func(_ context.Context, c *cli.Command) error {
			if err := noArguments(c); err != nil {
				return err
			}
			origins, err := settings(c)
			if err != nil {
				return err
			}
			text, err := effective(c, origins)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(p.stdout, text)
			return err
		},
	}
}

// effective writes the flags of c as TOML, with where each comes from.
func effective(c *cli.Command, origins map[string]origin) (string, error) {
	var out strings.Builder
	table := ""
	for _, f := range ordered(configurable(c)) {
		if name(f) == "config" {
			continue
		}
		prefix, key := tableOf(name(f))
		if prefix != table {
			fmt.Fprintf(&out, "\n[%s]\n", prefix)
			table = prefix
		}
		value, err := toml.Marshal(map[string]any{key: tomlValue(f.Get())})
		if err != nil {
			return "", fmt.Errorf("%s: %w", name(f), err)
		}
		fmt.Fprintf(&out, "%s # %s\n", strings.TrimSuffix(string(value), "\n"), origins[name(f)])
	}
	return out.String(), nil
}

// ordered sorts flags so that those of no table come first, as TOML has it.
func ordered(flags []cli.Flag) []cli.Flag {
	slices.SortFunc(flags, func(a, b cli.Flag) int {
		tableA, keyA := tableOf(name(a))
		tableB, keyB := tableOf(name(b))
		return cmp.Or(cmp.Compare(tableA, tableB), cmp.Compare(keyA, keyB))
	})
	return flags
}

func tableOf(flag string) (table, key string) {
	if i := strings.LastIndexByte(flag, '.'); i >= 0 {
		return flag[:i], flag[i+1:]
	}
	return "", flag
}

func tomlValue(value any) any {
	switch v := value.(type) {
	case time.Duration:
		return v.String()
	case []string:
		return nonEmpty(v)
	default:
		return v
	}
}
