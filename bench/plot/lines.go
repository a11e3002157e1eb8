// SPDX-License-Identifier: Apache-2.0

package plot

import "math"

const (
	linesWidth, linesHeight = 760, 320
	left, right             = 70, 20
	top, bottom             = 60, 45
)

// Lines draws series over x, both axes logarithmic: what costs the same for any x
// is a horizontal line, and what grows with x a slope. Figures that are not
// positive are left out.
func Lines(title, xName, yName string, x []float64, series []Series) string {
	c := &canvas{width: linesWidth, height: linesHeight}
	c.text(0, 16, "start", "title", title)
	c.legend(left, 38, series)
	across := newScale(left, linesWidth-right, x)
	var all []float64
	for _, s := range series {
		all = append(all, s.Values...)
	}
	up := newScale(linesHeight-bottom, top, all)
	for _, tick := range across.ticks() {
		c.grid(across.at(tick), top, across.at(tick), linesHeight-bottom)
		c.text(across.at(tick), linesHeight-bottom+16, "middle", "quiet", short(tick))
	}
	for _, tick := range up.ticks() {
		c.grid(left, up.at(tick), linesWidth-right, up.at(tick))
		c.text(left-6, up.at(tick)+4, "end", "quiet", short(tick))
	}
	c.text((left+linesWidth-right)/2, linesHeight-6, "middle", "quiet", xName)
	c.text(0, top-8, "start", "quiet", yName)
	for i, s := range series {
		var points [][2]float64
		for j, v := range s.Values {
			if j < len(x) && drawable(v) && drawable(x[j]) {
				points = append(points, [2]float64{across.at(x[j]), up.at(v)})
			}
		}
		c.path(points, colour(i))
		for _, p := range points {
			c.point(p[0], p[1], colour(i))
		}
	}
	return c.String()
}

func drawable(v float64) bool { return v > 0 && !math.IsInf(v, 1) }

// A scale is a logarithmic axis.
type scale struct {
	from, to    float64 // of the picture
	least, most float64 // powers of ten around all figures
}

func newScale(from, to float64, figures []float64) scale {
	s := scale{from: from, to: to, least: math.Inf(1), most: math.Inf(-1)}
	for _, v := range figures {
		if drawable(v) {
			s.least, s.most = math.Min(s.least, math.Floor(math.Log10(v))), math.Max(s.most, math.Ceil(math.Log10(v)))
		}
	}
	if s.least > s.most { // no figures
		s.least, s.most = 0, 1
	}
	if s.least == s.most {
		s.most++
	}
	return s
}

func (s scale) at(v float64) float64 {
	return s.from + (s.to-s.from)*(math.Log10(v)-s.least)/(s.most-s.least)
}

func (s scale) ticks() (ticks []float64) {
	for e := s.least; e <= s.most; e++ {
		ticks = append(ticks, math.Pow(10, e))
	}
	return ticks
}
