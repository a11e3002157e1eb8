// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// poll is how often a test asks whether something has happened.
const poll = 3 * time.Millisecond

// pause lets some time pass, or ends with the test.
func pause(t testing.TB, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// TestPreconfirmationLatency sends transactions at random moments and measures
// how long after being accepted each shows on pending, and whether that is before
// its block seals. Both are printed and not judged: a busy machine is no bug.
// make latency sends 200, which is GLIMPSE_LATENCY_SENDS.
func TestPreconfirmationLatency(t *testing.T) {
	sends := 5
	if text := os.Getenv("GLIMPSE_LATENCY_SENDS"); text != "" {
		var err error
		if sends, err = strconv.Atoi(text); err != nil {
			t.Fatalf("GLIMPSE_LATENCY_SENDS: %v", err)
		}
	}
	seed := rand.Uint64()
	t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
		r := rand.New(rand.NewPCG(seed, 0))
		url := startDev(t).url()
		w := newWallet(t, 0)
		cell := deployCell(t, url, w)
		eventually(t, "the cell", func() bool { return slotAt(t, url, cell, "latest") == 42 })

		var took []time.Duration
		late := 0
		for i := range uint64(sends) {
			pause(t, time.Duration(r.Int64N(int64(700*time.Millisecond))))
			value := 1000 + i
			send(t, url, w.sign(t, &cell, word(value)))
			accepted := time.Now()
			for {
				pending, latest := slotsAt(t, url, cell)
				if pending == value {
					if latest == value {
						late++
					}
					break
				}
				if latest == value {
					t.Errorf("send %d: pending is older than latest", i)
				}
				pause(t, poll)
			}
			took = append(took, time.Since(accepted))
		}
		slices.Sort(took)
		at := func(part float64) time.Duration { return took[int(part*float64(len(took)-1))] }
		t.Logf("%d transactions, accepted to pending: p50 %v, p90 %v, p99 %v, most %v; %d of them only when their block sealed", sends,
			at(0.5).Round(time.Millisecond), at(0.9).Round(time.Millisecond), at(0.99).Round(time.Millisecond), at(1).Round(time.Millisecond), late)
	})
}

// startDev starts the embedded chain with free ports.
func startDev(t *testing.T, args ...string) *server {
	t.Helper()
	return serve(t, append([]string{"dev", "--http.port", "0", "--dev.feed-port", "0"}, args...)...)
}
