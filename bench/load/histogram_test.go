// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"glimpse/bench/load"
)

func TestQuantileOfFewTimes(t *testing.T) {
	times := []time.Duration{10, 20, 30, 40, 50, 60, 70, 80, 90, 100}
	for name, c := range map[string]struct {
		q    float64
		want time.Duration
	}{
		"the least":                   {0, 10},
		"half of an even number":      {0.5, 50},
		"just above half":             {0.51, 60},
		"what nine of ten stay below": {0.9, 90},
		"almost all":                  {0.999, 100},
		"the greatest":                {1, 100},
	} {
		t.Run(name, func(t *testing.T) {
			var h load.Histogram
			for _, d := range times {
				h.Add(d)
			}
			if got := h.Quantile(c.q); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestQuantileOfNothingIsZero(t *testing.T) {
	if got := new(load.Histogram).Quantile(0.5); got != 0 {
		t.Errorf("got %v, want 0", got)
	}
}

func TestQuantilesAreWithinOnePercent(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	var h load.Histogram
	var times []time.Duration
	for range 100_000 {
		// From nanoseconds to minutes, as many of each size.
		d := time.Duration(random.Uint64() >> (28 + random.IntN(36)))
		times = append(times, d)
		h.Add(d)
	}
	slices.Sort(times)
	for _, q := range []float64{0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1} {
		want := times[int(q*float64(len(times)))-1]
		if got := h.Quantile(q); (got-want).Abs()*100 > want {
			t.Errorf("quantile %v: got %v, want %v within one percent", q, got, want)
		}
	}
	if h.Count() != uint64(len(times)) {
		t.Errorf("got a count of %d, want %d", h.Count(), len(times))
	}
}

func TestTimesBeyondAllBoundsAreCounted(t *testing.T) {
	var h load.Histogram
	h.Add(-1)
	h.Add(1<<63 - 1)
	if got := h.Quantile(0); got != 0 {
		t.Errorf("got %v for a negative time, want 0", got)
	}
	if got := h.Quantile(1); got < 290*365*24*time.Hour {
		t.Errorf("got %v for the longest time there is", got)
	}
}
