// SPDX-License-Identifier: Apache-2.0

package parallel_test

import (
	"sync/atomic"
	"testing"

	"glimpse/internal/parallel"
)

func TestDoCallsEachOnce(t *testing.T) {
	for _, n := range []int{0, 1, 2, 1000} {
		calls := make([]atomic.Int32, n)
		parallel.Do(n, func(i int) { calls[i].Add(1) })
		for i := range calls {
			if got := calls[i].Load(); got != 1 {
				t.Errorf("of %d, %d was called %d times, want once", n, i, got)
			}
		}
	}
}
