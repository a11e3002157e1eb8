// SPDX-License-Identifier: Apache-2.0

package table

import (
	"math"
	"slices"
	"strconv"
	"time"
)

// None is written where there is no figure.
const None = "-"

// Count writes a number that is known to about three digits, in groups of three.
// What is not a number is None.
func Count(n float64) string {
	switch {
	case math.IsNaN(n) || math.IsInf(n, 0):
		return None
	case math.Abs(n) < 10:
		return strconv.FormatFloat(n, 'f', 1, 64)
	}
	return groups(int64(math.Round(n)))
}

func groups(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// Ratio writes how many times one figure is another.
func Ratio(n float64) string {
	switch {
	case math.IsNaN(n) || math.IsInf(n, 0):
		return None
	case n >= 10:
		return strconv.FormatFloat(n, 'f', 1, 64)
	}
	return strconv.FormatFloat(n, 'f', 2, 64)
}

// Time writes how long something takes, in microseconds, milliseconds or seconds.
func Time(d time.Duration) string {
	switch {
	case d < 0:
		return None
	case d < time.Millisecond:
		return Count(float64(d)/1e3) + " µs"
	case d < time.Second:
		return strconv.FormatFloat(float64(d)/1e6, 'f', 1, 64) + " ms"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
}

// Bytes writes a size in millions of bytes.
func Bytes(n int64) string {
	if n < 0 {
		return None
	}
	return Count(float64(n)/1e6) + " MB"
}

// Median returns the middle of some figures, the mean of both where two are in the
// middle. It is not a number where there are none.
func Median(figures []float64) float64 {
	if len(figures) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(figures))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
