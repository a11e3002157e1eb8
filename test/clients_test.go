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
		t.Run(client, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "node", filepath.Join(dir, client+".mjs"))
			cmd.Env = append(os.Environ(), "GLIMPSE_URL="+s.url())
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}
