// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"testing"

	"glimpse/chain"
	"glimpse/watch"
)

func TestLevelOf(t *testing.T) {
	tests := []struct {
		name                  string
		tag                   watch.Tag
		preconfirmed, written bool
		want                  watch.Level
	}{
		{"latest, written by a new block", watch.Latest, false, true, watch.Sealed},
		{"latest, written by none: a reorg took a block away", watch.Latest, false, false, watch.Revoked},
		{"latest does not look at what is promised", watch.Latest, true, true, watch.Sealed},
		{"latest, taken away below a promise", watch.Latest, true, false, watch.Revoked},
		{"pending, promised", watch.Pending, true, false, watch.Preconfirmed},
		{"pending, promised above a new block that wrote it", watch.Pending, true, true, watch.Preconfirmed},
		{"pending, sealed and not promised", watch.Pending, false, true, watch.Sealed},
		{"pending, neither: a promise was withdrawn", watch.Pending, false, false, watch.Revoked},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := watch.LevelOf(tt.tag, tt.preconfirmed, tt.written); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// counting is a topic that counts how often it has to render.
type counting struct{ rendered *int }

type countingKey struct{}

func (c counting) Storage() (a chain.Address, ok bool)          { return a, false }
func (c counting) Begin(*fakeSnapshot) ([]watch.Message, error) { return nil, nil }
func (c counting) Step(s *watch.Step[*fakeSnapshot]) ([]watch.Message, error) {
	return watch.Shared(s, countingKey{}, func() ([]watch.Message, error) {
		*c.rendered++
		return []watch.Message{{Text: []byte("told")}}, nil
	})
}

func TestAStepIsRenderedOnceForAll(t *testing.T) {
	node := new(fakeNode)
	node.publish(&fakeSnapshot{names: "g"})
	w, stop := run(t, node, watch.Options{})
	rendered := 0
	var all []*watch.Subscription
	for range 100 {
		all = append(all, subscribe(t, w, counting{&rendered}))
	}
	node.publish(&fakeSnapshot{names: "gx"})
	for _, s := range all {
		if got := next(t, s); got != "told" {
			t.Fatalf("got %q", got)
		}
	}
	stop()
	if rendered != 1 {
		t.Errorf("rendered %d times, want once", rendered)
	}
}
