// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"

	"glimpse/internal/fixture"
)

// config runs "glimpse config" and returns what it prints.
func config(t *testing.T, file string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	args = append([]string{"glimpse", "config"}, args...)
	if file != "" {
		name := filepath.Join(t.TempDir(), "glimpse.toml")
		if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", name)
	}
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return out.String(), errs.String(), code
}

func TestPrecedence(t *testing.T) {
	tests := []struct {
		name string
		env  map[string]string
		file string
		args []string
		want string // a line of the effective configuration
	}{
		{"nothing is given", nil, "", nil, "port = 8545 # default"},
		{"the file has it", nil, "[http]\nport = 1", nil, "port = 1 # file"},
		{"the file has it with a dotted key", nil, "http.port = 1", nil, "port = 1 # file"},
		{"the environment has it too", map[string]string{"GLIMPSE_HTTP_PORT": "2"}, "[http]\nport = 1", nil, "port = 2 # environment"},
		{"an empty variable is none", map[string]string{"GLIMPSE_HTTP_PORT": ""}, "[http]\nport = 1", nil, "port = 1 # file"},
		{"the command line has it too", map[string]string{"GLIMPSE_HTTP_PORT": "2"}, "[http]\nport = 1", []string{"--http.port", "3"}, "port = 3 # flag"},
		{"the command line repeats the default", nil, "[http]\nport = 1", []string{"--http.port", "8545"}, "port = 8545 # flag"},
		{"a name with a dash", map[string]string{"GLIMPSE_RPC_MAX_WAIT": "7s"}, "", nil, `max-wait = "7s" # environment`},
		{"a duration", nil, "[dev]\nblock-time = '200ms'", nil, `block-time = "200ms" # file`},
		{"a list in the file", nil, "[http]\nvhosts = ['a', 'b']", nil, `vhosts = ["a", "b"] # file`},
		{"a list in the environment", map[string]string{"GLIMPSE_HTTP_VHOSTS": "a,b"}, "", nil, `vhosts = ["a", "b"] # environment`},
		{"an empty list in the file", nil, "[http]\nvhosts = []", nil, `vhosts = [] # file`},
		{"a switch", nil, "ops.pprof = true", nil, "pprof = true # file"},
		{"a key without a table", nil, "datadir = '/data'", nil, `datadir = "/data" # file`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			out, errs, code := config(t, tt.file, tt.args...)
			if code != 0 || !strings.Contains(out, tt.want+"\n") {
				t.Errorf("exit code %d, want 0 and %q:\n%s%s", code, tt.want, out, errs)
			}
		})
	}
}

func TestConfigFileFromTheEnvironment(t *testing.T) {
	name := filepath.Join(t.TempDir(), "glimpse.toml")
	if err := os.WriteFile(name, []byte("cache = 99"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GLIMPSE_CONFIG", name)
	if out, errs, code := config(t, ""); code != 0 || !strings.Contains(out, "cache = 99 # file\n") {
		t.Errorf("exit code %d:\n%s%s", code, out, errs)
	}
}

func TestRefusedSettings(t *testing.T) {
	tests := []struct {
		name string
		env  map[string]string
		file string
		want string
	}{
		{"unknown key", nil, "[http]\nporrt = 1", "unknown keys: http.porrt"},
		{"all unknown keys are named", nil, "a = 1\n[b]\nc = 1", "unknown keys: a, b.c"},
		{"a file that names another", nil, "config = 'x'", "unknown keys: config"},
		{"a value that the flag does not take", nil, "[http]\nport = 70000", "http.port"},
		{"a variable that the flag does not take", map[string]string{"GLIMPSE_HTTP_PORT": "x"}, "", "http.port"},
		{"a value of no use", nil, "datadir = 2020-01-01", "datadir"},
		{"a list of numbers", nil, "[http]\nvhosts = [1]", "http.vhosts"},
		{"a comma in a list", nil, "[http]\nvhosts = ['a,b']", "http.vhosts"},
		{"a list of tables", nil, "[[http]]\nport = 1", "http"},
		{"a key twice", nil, "cache = 1\ncache = 2", "cache"},
		{"a key twice, quoted", nil, "'http.port' = 1\n[http]\nport = 2", "http.port is set twice"},
		{"not TOML", nil, "cache 1", "glimpse.toml"},
		{"too long", nil, "#" + strings.Repeat("x", maxSettings), "bytes"},
		{"level of the log that is none", map[string]string{"GLIMPSE_LOG_LEVEL": "loud"}, "", "log.level"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			out, errs, code := config(t, tt.file)
			if code != 1 || !strings.Contains(errs, tt.want) || out != "" {
				t.Errorf("exit code %d, want 1 and %q:\n%s%s", code, tt.want, out, errs)
			}
		})
	}
}

// What config prints is a file that --config takes, and that means the same.
func TestConfigReadsWhatItPrints(t *testing.T) {
	first, _, code := config(t, "[http]\nvhosts = ['a']\n[rpc]\nkeys = 'k'", "--http.port", "1", "--dev.block-time", "1m", "--ops.pprof")
	if code != 0 {
		t.Fatal("config failed")
	}
	second, errs, code := config(t, first)
	if code != 0 {
		t.Fatalf("its own output is refused:\n%s", errs)
	}
	if a, b := values(t, first), values(t, second); a != b {
		t.Errorf("it means something else:\n%s\n%s", a, b)
	}
}

func values(t *testing.T, text string) string {
	t.Helper()
	var tables map[string]any
	if _, err := toml.Decode(text, &tables); err != nil {
		t.Fatal(err)
	}
	out, err := toml.Marshal(tables)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// docs/operations.md has the default of every flag.
func TestDocumentedDefaults(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(fixture.Repository(t), "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Flags\n")
	table, _, _ = strings.Cut(table, "\n## ")
	documented := make(map[string]string)
	for _, row := range regexp.MustCompile("(?m)^\\| (`--[^|]*) \\|[^|]*\\| ([^|]*)\\|").FindAllStringSubmatch(table, -1) {
		names, defaults := strings.Split(row[1], ", "), strings.Split(strings.TrimSpace(row[2]), ", ")
		for i, name := range names {
			documented[strings.Trim(name, "`-")] = defaults[min(i, len(defaults)-1)]
		}
	}
	for _, f := range everyFlag() {
		got, ok := documented[name(f)]
		want := strings.Trim(fmt.Sprint(f.Get()), "[]")
		if d, isDuration := f.Get().(time.Duration); isDuration {
			// 2m and 2m0s are the same.
			written, err := time.ParseDuration(got)
			ok, got, want = ok && err == nil, written.String(), d.String()
		}
		if !ok || got != want {
			t.Errorf("docs/operations.md has %q as the default of --%s, want %q", got, name(f), want)
		}
	}
}

// The example in deploy is a file that --config takes, and what is commented out
// in it are the defaults.
func TestExampleConfiguration(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(fixture.Repository(t), "deploy", "glimpse.toml"))
	if err != nil {
		t.Fatal(err)
	}
	if _, errs, code := config(t, string(text)); code != 0 {
		t.Fatalf("it is refused: %s", errs)
	}
	all := regexp.MustCompile(`(?m)^# ([a-z-]+ = )`).ReplaceAllString(string(text), "$1")
	if all == string(text) {
		t.Fatal("nothing is commented out")
	}
	defaults, _, _ := config(t, "")
	out, errs, code := config(t, all)
	if code != 0 {
		t.Fatalf("with all keys it is refused: %s", errs)
	}
	set := regexp.MustCompile(`(?m)^(.*) # file$`)
	for _, m := range set.FindAllStringSubmatch(out, -1) {
		switch key, _, _ := strings.Cut(m[1], " "); key {
		case "datadir", "format", "keys": // what the example chooses, or what has no default
		default:
			if !strings.Contains(defaults, "\n"+m[1]+" # default\n") && !strings.HasPrefix(defaults, m[1]+" # default\n") {
				t.Errorf("the example says that %s is the default", m[1])
			}
		}
	}
}

// A file is refused or taken, whatever is in it.
func FuzzSettings(f *testing.F) {
	for _, seed := range []string{"", "cache = 1", "[http]\nport = 1\nvhosts = ['a']", "a.b.c = {d = 1}", "[[a]]", "\x00", "'http.port' = 1\nhttp.port = 2"} {
		f.Add(seed)
	}
	known := everyFlag()
	f.Fuzz(func(t *testing.T, text string) {
		file := settingsFile{values: make(map[string]any)}
		if file.parse(text) != nil || file.check(known) != nil {
			return
		}
		for flag := range file.values {
			if _, ok := file.lookup(flag); !ok {
				t.Errorf("%s was accepted and has no value", flag)
			}
		}
	})
}
