// SPDX-License-Identifier: Apache-2.0

//go:build !race

// The race detector makes sync.Pool drop items at random.

package head_test

import (
	"testing"

	"glimpse/chain"
	"glimpse/head"
)

func TestLeaseDoesNotAllocate(t *testing.T) {
	var p head.Publisher
	p.Publish(newState(1, 0, 9))
	defer p.Close()
	allocs := testing.AllocsPerRun(100, func() {
		l := p.Acquire()
		for n := range chain.Number(3) {
			v, err := l.View(chain.ByNumber(n))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := v.Slot(chain.Address{}, chain.Slot{}); err != nil {
				t.Fatal(err)
			}
		}
		l.Release()
	})
	if allocs != 0 {
		t.Errorf("a request allocates %v times, want 0", allocs)
	}
}
