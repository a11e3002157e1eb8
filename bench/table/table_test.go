// SPDX-License-Identifier: Apache-2.0

package table_test

import (
	"math"
	"testing"
	"time"

	"glimpse/bench/table"
)

func TestTableInMarkdown(t *testing.T) {
	tab := table.New("load", "geth")
	tab.Add("latest | pending", "1")
	tab.Add("short")
	tab.Add("long", "2", "dropped")
	const want = "| load | geth |\n|---|---|\n| latest \\| pending | 1 |\n| short |  |\n| long | 2 |\n"
	if got := tab.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestReplaceBetweenMarkers(t *testing.T) {
	const begin, end = "<!-- a -->", "<!-- /a -->"
	for name, c := range map[string]struct {
		document, want string
	}{
		"what was there goes":           {"x\n<!-- a -->\nold\n<!-- /a -->\ny\n", "x\n<!-- a -->\nnew\n<!-- /a -->\ny\n"},
		"nothing was there":             {"<!-- a --><!-- /a -->", "<!-- a -->\nnew\n<!-- /a -->"},
		"no marker":                     {"x", ""},
		"no second marker":              {"<!-- a -->", ""},
		"the markers are in their turn": {"<!-- /a --><!-- a -->", ""},
		"a marker is there twice":       {"<!-- a --><!-- a --><!-- /a -->", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := table.Replace(c.document, begin, end, "new\n\n")
			if (err != nil) != (c.want == "") || got != c.want {
				t.Errorf("got %q (%v), want %q", got, err, c.want)
			}
		})
	}
}

func TestFigures(t *testing.T) {
	for name, c := range map[string]struct{ got, want string }{
		"a large count":            {table.Count(1234567.4), "1,234,567"},
		"a count of three digits":  {table.Count(999.4), "999"},
		"a small count":            {table.Count(1.26), "1.3"},
		"a negative count":         {table.Count(-12345), "-12,345"},
		"a count of nothing":       {table.Count(math.NaN()), "-"},
		"a ratio":                  {table.Ratio(0.804), "0.80"},
		"a large ratio":            {table.Ratio(12.34), "12.3"},
		"a ratio to nothing":       {table.Ratio(math.Inf(1)), "-"},
		"microseconds":             {table.Time(42 * time.Microsecond), "42 µs"},
		"less than a microsecond":  {table.Time(400), "0.4 µs"},
		"milliseconds":             {table.Time(1500 * time.Microsecond), "1.5 ms"},
		"seconds":                  {table.Time(90 * time.Second), "90.0 s"},
		"a time that is not known": {table.Time(-1), "-"},
		"bytes":                    {table.Bytes(226_000_000), "226 MB"},
		"bytes that are not known": {table.Bytes(-1), "-"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.got != c.want {
				t.Errorf("got %q, want %q", c.got, c.want)
			}
		})
	}
}

func TestMedian(t *testing.T) {
	for name, c := range map[string]struct {
		figures []float64
		want    float64
	}{
		"of an odd number":   {[]float64{9, 1, 5}, 5},
		"of an even number":  {[]float64{4, 1, 2, 100}, 3},
		"of one":             {[]float64{7}, 7},
		"an outlier or more": {[]float64{1, 1, 1, 1e9, 1e9}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			before := append([]float64(nil), c.figures...)
			if got := table.Median(c.figures); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
			for i := range before {
				if before[i] != c.figures[i] {
					t.Errorf("the figures were reordered: %v", c.figures)
				}
			}
		})
	}
	if got := table.Median(nil); !math.IsNaN(got) {
		t.Errorf("got %v of nothing", got)
	}
}
