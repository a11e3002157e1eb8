// SPDX-License-Identifier: Apache-2.0

package plot

import "math"

const (
	barsWidth  = 760
	labelWidth = 240
	valueWidth = 60
	barHeight  = 13
	groupGap   = 12
	headHeight = 52
)

// Bars draws a bar for each series in each group, one below the other, all to one
// scale. The values of a series are those of the groups, in their order.
func Bars(title string, groups []string, series []Series) string {
	groupHeight := barHeight*len(series) + groupGap
	c := &canvas{width: barsWidth, height: headHeight + groupHeight*len(groups)}
	c.text(0, 16, "start", "title", title)
	c.legend(labelWidth, 38, series)
	most := greatest(series)
	for g, name := range groups {
		top := float64(headHeight + g*groupHeight)
		c.text(labelWidth-10, top+float64(barHeight*len(series))/2+4, "end", "", name)
		for i, s := range series {
			y := top + float64(i*barHeight)
			if g >= len(s.Values) || math.IsNaN(s.Values[g]) {
				c.text(labelWidth, y+10, "start", "quiet", "-")
				continue
			}
			width := (barsWidth - labelWidth - valueWidth) * s.Values[g] / most
			c.bar(labelWidth, y, math.Max(width, 1), barHeight-2, colour(i))
			c.text(labelWidth+width+6, y+10, "start", "quiet", short(s.Values[g]))
		}
	}
	return c.String()
}

// greatest returns the greatest of all figures, or 1 where none is positive.
func greatest(series []Series) float64 {
	most := 0.0
	for _, s := range series {
		for _, v := range s.Values {
			if v > most {
				most = v
			}
		}
	}
	if most == 0 {
		return 1
	}
	return most
}
