// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestClients has ordinary clients deploy a contract, read it on pending before
// its block seals, and wait for its receipt.
//
// GLIMPSE_CLIENTS is the directory of their scripts with what they need
// installed; make e2e-clients installs it.
func TestClients(t *testing.T) {
	dir := os.Getenv("GLIMPSE_CLIENTS")
	if dir == "" {
		t.Skip("GLIMPSE_CLIENTS is not set; make e2e-clients installs the clients and sets it")
	}
	s := startDev(t)
	for _, client := range []string{"viem", "ethers", "web3", "cast"} {
		t.Run(client, func(t *testing.T) { runClient(t, dir, client, s) })
	}
}

// TestClientsOfAFollower has them do the same with a node that follows an anvil
// and forwards to it what it does not serve.
func TestClientsOfAFollower(t *testing.T) {
	dir, anvil := os.Getenv("GLIMPSE_CLIENTS"), os.Getenv("GLIMPSE_ANVIL")
	if dir == "" || anvil == "" {
		t.Skip("GLIMPSE_CLIENTS or GLIMPSE_ANVIL is not set; make e2e-clients installs both and sets them")
	}
	s := startFollow(t, startAnvil(t, anvil), "--forward", "--datadir", t.TempDir())
	for _, client := range []string{"viem", "ethers"} {
		t.Run(client, func(t *testing.T) { runClient(t, dir, client, s, "GLIMPSE_SEALED_ONLY=1") })
	}
}

func runClient(t *testing.T, dir, client string, s *server, env ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join(dir, client+".mjs"))
	cmd.Env = append(append(os.Environ(), "GLIMPSE_URL="+s.url()), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the node printed:\n%s\nthe client, which ended with %v:\n%s", s.out.String(), err, out)
	}
	t.Logf("%s", out)
}
