// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

func writeFile(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestReplicaLatency deploys contracts at a writer and measures how much later than
// on the writer's own pending each shows on each of two replicas. It prints the
// distribution; GLIMPSE_REPLICA_DEPLOYMENTS asks for more than a few, as make
// replica-latency does.
func TestReplicaLatency(t *testing.T) {
	deployments := number(t, "GLIMPSE_REPLICA_DEPLOYMENTS", 5)
	w := startWriter(t, "--datadir", filepath.Join(t.TempDir(), "writer"))
	nodes := []*server{w, startReplica(t, w.nats, filepath.Join(t.TempDir(), "0")), startReplica(t, w.nats, filepath.Join(t.TempDir(), "1"))}
	for _, n := range nodes[1:] {
		n.ready(t, "?tag=pending")
	}
	from := newWallet(t, 0)
	late := make([][]time.Duration, len(nodes)-1)
	for range deployments {
		addr := crypto.CreateAddress(from.addr, from.nonce)
		send(t, w.url(), from.sign(t, nil, cellInit))
		shown := make([]time.Time, len(nodes))
		var watching sync.WaitGroup
		for i, n := range nodes {
			watching.Go(func() { shown[i] = codeShown(t, n.url(), addr) })
		}
		watching.Wait()
		for i := range late {
			if shown[i+1].IsZero() || shown[0].IsZero() {
				t.Fatal("a deployment does not show")
			}
			late[i] = append(late[i], shown[i+1].Sub(shown[0]))
		}
	}
	for i, took := range late {
		slices.Sort(took)
		t.Logf("replica %d, %d deployments, after the writer's own pending: p50 %v, p90 %v, p99 %v, most %v", i, len(took),
			part(took, 0.5), part(took, 0.9), part(took, 0.99), part(took, 1))
	}
}

// codeShown asks for a code on pending until it is there, and returns when that was
// answered; zero where it never is.
func codeShown(t *testing.T, url string, addr common.Address) time.Time {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		if string(call(t, url, "eth_getCode", addr, "pending")) != `"0x"` {
			return time.Now()
		}
		pause(t, 300*time.Microsecond)
	}
	return time.Time{}
}
