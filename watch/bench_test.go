// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"testing"

	"glimpse/chain"
	"glimpse/watch"
)

// BenchmarkStep is what a block that writes a few slots costs with a thousand
// subscribers to one of them each, all of whom are told.
func BenchmarkStep(b *testing.B) {
	node := new(fakeNode)
	even, odd := puts(1, 2, 2, 2, 3, 3), puts(1, 3, 2, 4, 3, 5)
	writes := map[byte]write{'g': {}, 'a': even, 'b': odd}
	node.publish(&fakeSnapshot{names: "ga", writes: writes})
	w := watch.New(node.acquire, watch.Options{})
	go func() { _ = w.Run(b.Context()) }() // returns only ctx's error
	var all []*watch.Subscription
	for range 1000 {
		s, err := w.Subscribe(b.Context(), changes{[]chain.Slot{slot(1)}})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Next(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
		all = append(all, s)
	}
	buffer := make([]byte, 0, 1024)
	for i := 0; b.Loop(); i++ {
		node.publish(&fakeSnapshot{names: "g" + string("ba"[i%2]), writes: writes})
		for _, s := range all {
			if _, err := s.Next(b.Context(), buffer); err != nil {
				b.Fatal(err)
			}
		}
	}
}
