// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"glimpse/chain"
)

// TestDevChainAgainstGeth runs the embedded chain under random transactions of
// every type for 300 blocks, exports it, has a real geth import it, and compares
// both as TestAgainstGeth does.
func TestDevChainAgainstGeth(t *testing.T) {
	geth := os.Getenv("GLIMPSE_GETH")
	if geth == "" {
		t.Skip("GLIMPSE_GETH is not set; make e2e-geth builds a geth and sets it")
	}
	seed := rand.Uint64()
	t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
		dir := t.TempDir()
		t.Run("load", func(t *testing.T) {
			s := startDev(t, "--datadir", dir, "--dev.block-time", "150ms", "--dev.flashblock-time", "30ms")
			l := newLoad(t, seed, s.url())
			for height(t, s.url()) < 300 {
				for range 1 + l.random.IntN(4) {
					l.step(t)
				}
				pause(t, time.Duration(l.random.IntN(60))*time.Millisecond)
			}
			t.Logf("sent by type: %v", l.sent)
			for kind, n := range l.sent {
				if n == 0 {
					t.Errorf("no transaction of type %d was sent", kind)
				}
			}
		})
		file := chainFile{filepath.Join(t.TempDir(), "genesis.json"), filepath.Join(t.TempDir(), "chain.rlp")}
		if err := os.WriteFile(file.genesis, []byte(mustRun(t, "genesis")), 0o600); err != nil {
			t.Fatal(err)
		}
		mustRun(t, "export", "--datadir", dir, file.blocks)
		againstGeth(t, geth, dir, file)
	})
}

// Killed at any moment, the embedded chain goes on from its last sealed block:
// no block that a caller has seen is lost or changed.
func TestKilledDevChainResumes(t *testing.T) {
	seed := rand.Uint64()
	t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
		r := rand.New(rand.NewPCG(seed, 0))
		dir := t.TempDir()
		args := []string{"--datadir", dir, "--dev.block-time", "100ms", "--dev.flashblock-time", "20ms"}
		seen := make(map[uint64]chain.Hash)
		w := newWallet(t, 0)
		var cell common.Address
		for round := range 4 {
			s := startDev(t, args...)
			for n, want := range seen {
				if got := hashOf(t, s.url(), n); got != want {
					t.Fatalf("block %d is %s after a restart, was %s", n, got, want)
				}
			}
			if round == 0 {
				cell = deployCell(t, s.url(), w)
				eventually(t, "the cell", func() bool { return slotAt(t, s.url(), cell, "latest") == 42 })
			}
			var nonce hexutil.Uint64
			mustDecode(t, call(t, s.url(), "eth_getTransactionCount", w.addr, "latest"), &nonce)
			w.nonce = uint64(nonce)
			for range 3 + r.IntN(10) {
				send(t, s.url(), w.sign(t, &cell, word(r.Uint64N(100))))
				n := height(t, s.url())
				seen[n] = hashOf(t, s.url(), n)
				pause(t, time.Duration(r.IntN(60))*time.Millisecond)
			}
			s.kill(t)
		}
		mustRun(t, "verify", "--datadir", dir)
		if len(seen) < 4 {
			t.Errorf("only %d blocks were seen", len(seen))
		}
	})
}

// kill ends the server without a chance to clean up.
func (s *server) kill(t *testing.T) {
	t.Helper()
	s.killed = true
	if err := s.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.done
	_ = s.cmd.Wait() // says that it was killed
}

func hashOf(t testing.TB, url string, n uint64) chain.Hash {
	t.Helper()
	var block struct{ Hash chain.Hash }
	mustDecode(t, call(t, url, "eth_getBlockByNumber", fmt.Sprintf("%#x", n), false), &block)
	return block.Hash
}

func mustDecode(t testing.TB, data json.RawMessage, v any) {
	t.Helper()
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
}
