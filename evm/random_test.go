// SPDX-License-Identifier: Apache-2.0

package evm_test

import (
	"os"
	"strconv"
	"testing"

	"glimpse/internal/chaingen"
)

// More seeds than the other tests have, GLIMPSE_SEEDS of them, through every
// fork schedule.
func TestRandomChains(t *testing.T) {
	seeds := 2
	if text := os.Getenv("GLIMPSE_SEEDS"); text != "" {
		var err error
		if seeds, err = strconv.Atoi(text); err != nil {
			t.Fatalf("GLIMPSE_SEEDS: %v", err)
		}
	}
	schedules := map[string]chaingen.Forks{
		"modern": chaingen.Modern, "newest": chaingen.Newest, "amsterdam": chaingen.Amsterdam, "historic": chaingen.Historic,
	}
	for seed := range uint64(seeds) {
		for name, forks := range schedules {
			c := generated(forks, name, 100+seed, 48)
			t.Run(c.name, func(t *testing.T) {
				r := newReplay(t, c.genesis)
				for _, block := range c.blocks {
					r.step(t, block)
				}
				if got, want := flatRoot(t, r.state), r.head.Root; got != want {
					t.Errorf("got root %s of the flat state, want %s", got, want)
				}
			})
		}
	}
}
