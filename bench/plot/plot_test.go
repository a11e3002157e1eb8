// SPDX-License-Identifier: Apache-2.0

package plot_test

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"glimpse/bench/plot"
)

// elements parses a picture and returns how often each element is in it. Every
// coordinate must be a number within the picture, give or take a label.
func elements(t *testing.T, svg string) map[string]int {
	t.Helper()
	counts := make(map[string]int)
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return counts
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		counts[start.Name.Local]++
		for _, a := range start.Attr {
			switch a.Name.Local {
			case "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "width", "height":
				if v, err := strconv.ParseFloat(a.Value, 64); err != nil || !(v >= 0 && v <= 2000) {
					t.Errorf("%s has %s=%q", start.Name.Local, a.Name.Local, a.Value)
				}
			}
		}
	}
}

func TestBarsHaveABarForEachFigure(t *testing.T) {
	svg := plot.Bars("reads & <more>", []string{"latest", "pending"}, []plot.Series{
		{Name: "glimpse", Values: []float64{40000, 39000}},
		{Name: "geth", Values: []float64{6000, math.NaN()}},
		{Name: "anvil", Values: []float64{0}},
	})
	got := elements(t, svg)
	if legend, bars := 3, 4; got["svg"] != 1 || got["rect"] != legend+bars {
		t.Errorf("got %v, want 3 bars in the legend and 4 below", got)
	}
	if !strings.Contains(svg, "reads &amp; &lt;more&gt;") {
		t.Error("the title is not there")
	}
}

func TestLinesHaveAPointForEachFigure(t *testing.T) {
	svg := plot.Lines("growth", "slots", "µs", []float64{1e3, 1e4, 1e5, 1e6}, []plot.Series{
		{Name: "glimpse", Values: []float64{1.5, 1.6, 2, 4}},
		{Name: "geth", Values: []float64{10, math.NaN(), -1, math.Inf(1), 5}},
	})
	if got := elements(t, svg); got["polyline"] != 2 || got["circle"] != 5 {
		t.Errorf("got %v, want 2 lines of 4 points and 1", got)
	}
}

func TestPicturesWithoutFiguresAreStillPictures(t *testing.T) {
	for name, svg := range map[string]string{
		"bars without groups":     plot.Bars("t", nil, []plot.Series{{Name: "a"}}),
		"bars without figures":    plot.Bars("t", []string{"g"}, []plot.Series{{Name: "a"}}),
		"lines without figures":   plot.Lines("t", "x", "y", nil, nil),
		"lines through one point": plot.Lines("t", "x", "y", []float64{1000}, []plot.Series{{Name: "a", Values: []float64{10}}}),
	} {
		t.Run(name, func(t *testing.T) {
			if got := elements(t, svg); got["svg"] != 1 {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestColoursChangeWithThePage(t *testing.T) {
	if !strings.Contains(plot.Bars("t", nil, nil), "prefers-color-scheme: dark") {
		t.Error("the picture has one set of colours only")
	}
}
