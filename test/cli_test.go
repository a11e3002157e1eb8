// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/internal/chaingen"
)

func TestVersion(t *testing.T) {
	out := mustRun(t, "version")
	if !regexp.MustCompile(`^glimpse/v\d+\.\d+\.\d+\S*/\w+-\w+/go\S+\n$`).MatchString(out) {
		t.Errorf("version prints %q", out)
	}
}

// A command line that cannot be meant is refused with exit code 1 and the
// reason, and does nothing.
func TestRefusedCommandLines(t *testing.T) {
	datadir := t.TempDir()
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"unknown command", []string{"sevre"}, "sevre"},
		{"unknown flag", []string{"serve", "--datadirr", "x"}, "datadirr"},
		{"no datadir", []string{"serve"}, "datadir"},
		{"argument too many", []string{"serve", "--datadir", datadir, "x"}, `unexpected argument "x"`},
		{"no upstream", []string{"follow", "--datadir", datadir}, "no upstream"},
		{"an upstream that is not there", []string{"follow", "--datadir", datadir + "/f", "--upstream", "http://127.0.0.1:1"}, "127.0.0.1:1"},
		{"no feed", []string{"record", datadir + "/r"}, "no feed"},
		{"no feed file", []string{"replay"}, "no feed file"},
		{"no files", []string{"import", "--datadir", datadir}, "no files given"},
		{"cache that is none", []string{"serve", "--datadir", datadir, "--cache", "0"}, "cache"},
		{"port that is none", []string{"--http.port", "70000"}, "port"},
		{"datadir that is not there", []string{"serve", "--datadir", datadir + "/nowhere"}, "nowhere"},
		{"datadir without a chain", []string{"verify", "--datadir", datadir}, "archive is empty"},
		{"new datadir without genesis", []string{"import", "--datadir", datadir + "/new", os.Args[0]}, "genesis"},
		{"genesis that is none", []string{"import", "--datadir", datadir + "/new", "--genesis", os.Args[0], os.Args[0]}, "genesis"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, code := run(t, tt.args...)
			if code != 1 || !strings.Contains(out, tt.want) {
				t.Errorf("exit code %d, want 1 with %q:\n%s", code, tt.want, out)
			}
			if strings.Contains(out, "panic") || strings.Contains(out, "goroutine ") {
				t.Errorf("it panics:\n%s", out)
			}
		})
	}
}

// The first bad block stops an import with exit code 1, by name; what was before
// it stays, and is served.
func TestBadBlockStopsImport(t *testing.T) {
	genesis, blocks := chaingen.Generate(11, 12, chaingen.Options{})
	header := blocks[8].Header()
	header.Root[31] ^= 1
	bad := types.NewBlockWithHeader(header).WithBody(*blocks[8].Body())
	chain := writeChain(t, genesis, append(append([]*types.Block{}, blocks[:8]...), bad))

	dir := t.TempDir()
	out, code := run(t, chain.importArgs(dir)...)
	for _, want := range []string{"block 9", bad.Hash().Hex(), "state root", bad.Root().Hex(), blocks[8].Root().Hex()} {
		if code != 1 || !strings.Contains(out, want) {
			t.Errorf("exit code %d without %q:\n%s", code, want, out)
		}
	}
	s := serve(t, "serve", "--datadir", dir, "--http.port", "0")
	if got := string(call(t, s.url(), "eth_blockNumber")); got != `"0x8"` {
		t.Errorf("head is %s, want block 8", got)
	}
	if out, code := run(t, "verify", "--datadir", dir); code != 1 || !strings.Contains(out, "in use by another process") {
		t.Errorf("a datadir that is being served can be opened again: exit code %d\n%s", code, out)
	}
}
