// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"glimpse/internal/chaingen"
)

// kills is how often the import is killed, GLIMPSE_KILLS or a few.
func kills(t *testing.T) int {
	t.Helper()
	text := os.Getenv("GLIMPSE_KILLS")
	if text == "" {
		return 5
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("GLIMPSE_KILLS: %v", err)
	}
	return n
}

var digestLine = regexp.MustCompile(`digest=?\s*([0-9a-f]{64})`)

// digest runs verify, which must find the datadir sound, and returns the digest
// of its content.
func digest(t *testing.T, dir string) string {
	t.Helper()
	out := mustRun(t, "verify", "--datadir", dir)
	m := digestLine.FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("verify prints no digest:\n%s", out)
	}
	return m[1]
}

// P5: killed at any moment, an import leaves a sound store at the end of some
// block, and goes on from there to the same content as one never killed.
func TestKilledImportResumes(t *testing.T) {
	seed := rand.Uint64()
	t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
		r := rand.New(rand.NewPCG(seed, 0))
		genesis, blocks := chaingen.Generate(seed, 1200, chaingen.Options{})
		chain := writeChain(t, genesis, blocks)

		whole := t.TempDir()
		start := time.Now()
		mustRun(t, chain.importArgs(whole)...)
		took := time.Since(start)
		want := digest(t, whole)

		dir, killed := t.TempDir(), 0
		finish := func() {
			if got := digest(t, dir); got != want {
				t.Errorf("digest after kills is %s, want %s", got, want)
			}
		}
		for killed < kills(t) {
			if importFor(t, chain, dir, time.Duration(r.Int64N(int64(took)))) {
				finish()
				dir = t.TempDir() // every kill is of an import under way
				continue
			}
			killed++
			mustBeSound(t, dir)
		}
		t.Logf("killed %d times in imports that take %v", killed, took)
		mustRun(t, chain.importArgs(dir)...)
		finish()
	})
}

// importFor imports into dir and kills the import after a while, unless it has
// finished by then.
func importFor(t *testing.T, chain chainFile, dir string, while time.Duration) (finished bool) {
	t.Helper()
	cmd := exec.Command(program, chain.importArgs(dir)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Fatalf("import: %v", err)
		}
		return true
	case <-time.After(while):
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
	return false
}

// mustBeSound verifies what a killed import left. Where it did not get as far as
// making a store, there is nothing to verify, and verify says so.
func mustBeSound(t *testing.T, dir string) {
	t.Helper()
	if out, code := run(t, "verify", "--datadir", dir); code != 0 && !strings.Contains(out, "archive is empty") {
		t.Fatalf("verify: exit code %d\n%s", code, out)
	}
}
