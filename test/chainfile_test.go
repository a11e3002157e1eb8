// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/internal/chaingen"
)

// A chainFile is a chain on disk as a user has it: what geth init and geth
// export work with.
type chainFile struct {
	genesis, blocks string
}

func writeChain(t testing.TB, genesis []byte, blocks []*types.Block) chainFile {
	t.Helper()
	var data bytes.Buffer
	for _, b := range blocks {
		if err := b.EncodeRLP(&data); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	c := chainFile{genesis: filepath.Join(dir, "genesis.json"), blocks: filepath.Join(dir, "chain.rlp")}
	for path, content := range map[string][]byte{c.genesis: genesis, c.blocks: data.Bytes()} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// importArgs are the arguments that import the chain into dir.
func (c chainFile) importArgs(dir string, flags ...string) []string {
	args := append([]string{"import", "--datadir", dir, "--genesis", c.genesis}, flags...)
	return append(args, c.blocks)
}

// importEmptyBlocks makes a datadir with a few blocks on top of a genesis file,
// the last ones safe and finalized.
func importEmptyBlocks(t *testing.T, datadir, genesisFile string, count int) {
	t.Helper()
	genesis, err := os.ReadFile(genesisFile)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := chaingen.Empty(genesis, count)
	if err != nil {
		t.Fatal(err)
	}
	file := writeChain(t, genesis, blocks)
	mustRun(t, file.importArgs(datadir, "--safe", "2", "--finalized", "1")...)
}
