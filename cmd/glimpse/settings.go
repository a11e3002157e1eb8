// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/urfave/cli/v3"
)

// configure gives c the flags that its command line left open: from the
// environment, else from the file that --config names.
func configure(ctx context.Context, c *cli.Command) (context.Context, error) {
	_, err := settings(c)
	return ctx, err
}

// An origin is where the value of a flag comes from.
type origin string

const (
	fromFlag        origin = "flag"
	fromEnvironment origin = "environment"
	fromFile        origin = "file"
	fromDefault     origin = "default"
)

// settings is configure that tells where each flag of c comes from.
func settings(c *cli.Command) (map[string]origin, error) {
	origins := make(map[string]origin)
	if err := fromOutside(c, origins, "environment", fromEnvironment, lookupEnv); err != nil {
		return nil, err
	}
	file, err := readSettings(c.String("config"))
	if err != nil {
		return nil, err
	}
	if err := file.check(everyFlag()); err != nil {
		return nil, err
	}
	if err := fromOutside(c, origins, file.name, fromFile, file.lookup); err != nil {
		return nil, err
	}
	for _, f := range configurable(c) {
		if _, ok := origins[name(f)]; !ok {
			origins[name(f)] = fromDefault
		}
	}
	return origins, nil
}

// configurable returns the flags of c but --help, which the library adds.
func configurable(c *cli.Command) []cli.Flag {
	return slices.DeleteFunc(slices.Clone(c.Flags), func(f cli.Flag) bool { return name(f) == "help" })
}

// fromOutside sets the flags that lookup has and that are not set yet.
func fromOutside(c *cli.Command, origins map[string]origin, where string, o origin, lookup func(flag string) (string, bool)) error {
	for _, f := range configurable(c) {
		if c.IsSet(name(f)) {
			if _, ok := origins[name(f)]; !ok {
				origins[name(f)] = fromFlag
			}
			continue
		}
		text, ok := lookup(name(f))
		if !ok {
			continue
		}
		if err := c.Set(name(f), text); err != nil {
			return fmt.Errorf("%s: %s: %w", where, name(f), err)
		}
		origins[name(f)] = o
	}
	return nil
}

// lookupEnv finds a flag in the environment. A variable that is empty is as good
// as none: that is how most tools that set them say so.
func lookupEnv(flag string) (string, bool) {
	text := os.Getenv(variable(flag))
	return text, text != ""
}

// variable is the name of a flag in the environment.
func variable(flag string) string {
	return "GLIMPSE_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(flag))
}

// A settingsFile is a TOML file as flags: the key port of the table http is the
// flag http.port.
type settingsFile struct {
	name   string
	values map[string]any // by flag
}

// maxSettings is far more than a file with all flags has.
const maxSettings = 1 << 20

// readSettings reads a file; the empty name is a file without settings.
func readSettings(name string) (settingsFile, error) {
	file := settingsFile{name: name, values: make(map[string]any)}
	if name == "" {
		return file, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return file, err
	}
	if err := file.parse(string(text)); err != nil {
		return file, fmt.Errorf("%s: %w", name, err)
	}
	return file, nil
}

func (s *settingsFile) parse(text string) error {
	if len(text) > maxSettings {
		return fmt.Errorf("%d bytes, want at most %d", len(text), maxSettings)
	}
	tables := make(map[string]any)
	if _, err := toml.Decode(text, &tables); err != nil {
		return err
	}
	return s.flatten("", tables)
}

func (s *settingsFile) flatten(prefix string, table map[string]any) error {
	for key, value := range table {
		flag := prefix + key
		if inner, ok := value.(map[string]any); ok {
			if err := s.flatten(flag+".", inner); err != nil {
				return err
			}
			continue
		}
		if _, twice := s.values[flag]; twice {
			return fmt.Errorf("%s is set twice", flag)
		}
		if _, ok := textOf(value); !ok {
			return fmt.Errorf("%s: want a string, a number, true, false or a list of strings", flag)
		}
		s.values[flag] = value
	}
	return nil
}

// textOf returns a value as it would be written on the command line.
func textOf(value any) (text string, ok bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case int64, float64, bool:
		return fmt.Sprint(v), true
	case []any:
		texts := make([]string, len(v))
		for i, element := range v {
			if texts[i], ok = element.(string); !ok || strings.Contains(texts[i], ",") {
				return "", false
			}
		}
		return strings.Join(texts, ","), true
	}
	return "", false
}

// check refuses keys that are no flag of any command: they are misspelt. One
// that belongs to another command is left alone, so that one file serves all.
func (s *settingsFile) check(known []cli.Flag) error {
	var unknown []string
	for flag := range s.values {
		if flag == "config" || !slices.ContainsFunc(known, func(f cli.Flag) bool { return name(f) == flag }) {
			unknown = append(unknown, flag)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return fmt.Errorf("%s: unknown keys: %s", s.name, strings.Join(unknown, ", "))
	}
	return nil
}

func (s *settingsFile) lookup(flag string) (string, bool) {
	value, ok := s.values[flag]
	if !ok {
		return "", false
	}
	return textOf(value)
}
