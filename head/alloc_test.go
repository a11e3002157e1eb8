// SPDX-License-Identifier: Apache-2.0

//go:build !race

// The race detector makes sync.Pool drop items at random.

package head_test

import (
	"testing"
	"time"

	"glimpse/chain"
	"glimpse/head"
)

func TestLeaseDoesNotAllocate(t *testing.T) {
	var p head.Publisher
	state := newState(1, 0, 9)
	p.Publish(state, &fakeOverlay{parent: state.Head()}, time.Now().Add(time.Hour))
	defer p.Close()
	selectors := []chain.Selector{chain.ByNumber(0), chain.ByNumber(1), chain.Latest, chain.Pending}
	allocs := testing.AllocsPerRun(100, func() {
		l := p.Acquire()
		for _, sel := range selectors {
			v, err := l.View(sel)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := v.Slot(chain.Address{}, chain.Slot{}); err != nil {
				t.Fatal(err)
			}
		}
		if len(l.Stamp()) == 0 {
			t.Fatal("no stamp")
		}
		l.Release()
	})
	if allocs != 0 {
		t.Errorf("a request allocates %v times, want 0", allocs)
	}
}
