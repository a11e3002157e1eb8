// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"glimpse/internal/fixture"
)

var (
	requestsAndAnswers = regexp.MustCompile("(?s)```sh\n(rpc [^`]*)```\n```json\n([^`]*)```")
	requestLine        = regexp.MustCompile(`^rpc (\S+) '(.*)'$`)
)

// What the README shows is what a new user gets. A … in an answer stands for
// what differs each time.
func TestReadmeRequests(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(fixture.Repository(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := requestsAndAnswers.FindAllStringSubmatch(string(text), -1)
	s := startDev(t)
	ran := 0
	for _, m := range shown {
		requests, answers := strings.Split(strings.TrimSpace(m[1]), "\n"), strings.Split(strings.TrimSpace(m[2]), "\n")
		if len(requests) != len(answers) {
			t.Fatalf("%d answers are shown for %d requests:\n%s", len(answers), len(requests), m[0])
		}
		for i, line := range requests {
			r := requestLine.FindStringSubmatch(line)
			if r == nil {
				t.Fatalf("not a request: %s", line)
			}
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}`, r[1], r[2])
			want := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(answers[i]), "…", `[^"]*`) + "$")
			// A person takes longer than a flashblock to paste the next lines.
			var got []byte
			eventually(t, "the answer to "+line, func() bool {
				if got, err = post(t.Context(), s.url(), []byte(body)); err != nil {
					t.Fatal(err)
				}
				return want.Match(got) || !isRead(r[1])
			})
			if !want.Match(got) {
				t.Errorf("%s\nanswers %s\nshown   %s", line, got, answers[i])
			}
			ran++
		}
	}
	if n := strings.Count(string(text), "\nrpc "); ran != n || n == 0 {
		t.Errorf("%d of the %d requests have an answer to compare with", ran, n)
	}
}

// The examples of docs/rpc.md for making the chain misbehave all work.
func TestMisbehaviourExamples(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(fixture.Repository(t), "docs", "rpc.md"))
	if err != nil {
		t.Fatal(err)
	}
	s := startDev(t, "--dev.block-time", "200ms", "--dev.flashblock-time", "20ms")
	eventually(t, "two blocks", func() bool { return height(t, s.url()) >= 2 })
	ran := 0
	for line := range strings.Lines(string(text)) {
		if r := requestLine.FindStringSubmatch(strings.TrimSpace(line)); r != nil {
			var params []any
			mustDecode(t, []byte(r[2]), &params)
			if got := string(call(t, s.url(), r[1], params...)); got != "true" {
				t.Errorf("%s answers %s, want true", strings.TrimSpace(line), got)
			}
			ran++
		}
	}
	if ran < 10 {
		t.Errorf("only %d examples were found", ran)
	}
}

func isRead(method string) bool {
	return strings.HasPrefix(method, "eth_get") || strings.HasPrefix(method, "glimpse_")
}

// Every flag of every command is in docs/operations.md, and every command.
func TestOperationsDocumentsEveryFlag(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(fixture.Repository(t), "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	flag := regexp.MustCompile(`(?m)^\s+(--[a-z.-]+)`)
	for _, command := range []string{"", "dev", "import", "export", "genesis", "serve", "follow", "replica", "record", "replay", "verify", "config", "version"} {
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
