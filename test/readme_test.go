// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"glimpse/internal/fixture"
)

// A curl line of the README and the answer that it shows.
var curlAndAnswer = regexp.MustCompile("(?s)```sh\ncurl -s localhost:8545 -H 'Content-Type: application/json' -d \\\\\n  '([^']*)'\n```\n```json\n(.*?)\n```")

// What the README shows is what a new user gets.
func TestReadmeRequests(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(fixture.Repository(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := curlAndAnswer.FindAllStringSubmatch(string(text), -1)
	if n := strings.Count(string(text), "\ncurl "); len(shown) != n || n == 0 {
		t.Fatalf("%d of the %d curl lines have an answer to compare with", len(shown), n)
	}
	s := serve(t, "--http.port", "0")
	for _, m := range shown {
		got, err := post(t.Context(), s.url(), []byte(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(parse(t, got), parse(t, []byte(m[2]))) {
			t.Errorf("%s\nanswers %s\nshown   %s", m[1], got, m[2])
		}
	}
}

// Every flag of every command is in docs/operations.md, and every command.
func TestOperationsDocumentsEveryFlag(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(fixture.Repository(t), "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	flag := regexp.MustCompile(`(?m)^\s+(--[a-z.]+)`)
	for _, command := range []string{"", "import", "serve", "verify", "version"} {
		args := []string{"--help"}
		if command != "" {
			args = []string{command, "--help"}
		}
		if !strings.Contains(string(text), "`glimpse"+strings.TrimSuffix(" "+command, " ")) {
			t.Errorf("docs/operations.md does not have the command %q", command)
		}
		for _, m := range flag.FindAllStringSubmatch(mustRun(t, args...), -1) {
			if m[1] != "--help" && !strings.Contains(string(text), "`"+m[1]+"`") {
				t.Errorf("docs/operations.md does not have %s of %q", m[1], command)
			}
		}
	}
}
