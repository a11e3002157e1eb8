// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// A Series is the figures of one thing that is compared. What is not a number is
// left out.
type Series struct {
	Name   string
	Values []float64
}

// colours have enough contrast on white and on black.
var colours = []string{"#3d8bd4", "#e07b39", "#3fa06a", "#9a72d0", "#c9a227", "#d05a7b"}

func colour(i int) string { return colours[i%len(colours)] }

// The page decides which of the two sets of colours is used.
const style = `<style>
text { font: 12px system-ui, sans-serif; fill: #24292f; }
.title { font-size: 14px; font-weight: 600; }
.quiet { fill: #57606a; }
.grid { stroke: #d0d7de; stroke-width: 1; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; }
.quiet { fill: #9aa4af; }
.grid { stroke: #3d444d; }
}
</style>
`

// A canvas collects the elements of a picture.
type canvas struct {
	width, height int
	elements      strings.Builder
}

func (c *canvas) text(x, y float64, anchor, class, text string) {
	fmt.Fprintf(&c.elements, `<text x="%.1f" y="%.1f" text-anchor="%s" class="%s">%s</text>`+"\n", x, y, anchor, class, html.EscapeString(text))
}

func (c *canvas) bar(x, y, width, height float64, fill string) {
	fmt.Fprintf(&c.elements, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", x, y, width, height, fill)
}

func (c *canvas) grid(x1, y1, x2, y2 float64) {
	fmt.Fprintf(&c.elements, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="grid"/>`+"\n", x1, y1, x2, y2)
}

func (c *canvas) point(x, y float64, fill string) {
	fmt.Fprintf(&c.elements, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x, y, fill)
}

func (c *canvas) path(points [][2]float64, stroke string) {
	c.elements.WriteString(`<polyline fill="none" stroke-width="2" stroke="` + stroke + `" points="`)
	for i, p := range points {
		if i > 0 {
			c.elements.WriteByte(' ')
		}
		fmt.Fprintf(&c.elements, "%.1f,%.1f", p[0], p[1])
	}
	c.elements.WriteString(`"/>` + "\n")
}

// legend writes the names of series in a row.
func (c *canvas) legend(x, y float64, series []Series) {
	for i, s := range series {
		c.bar(x, y-9, 10, 10, colour(i))
		c.text(x+15, y, "start", "quiet", s.Name)
		x += 30 + 7.2*float64(len([]rune(s.Name)))
	}
}

// margin is what is free on the left and on the right.
const margin = 8

func (c *canvas) String() string {
	width := c.width + 2*margin
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="%d 0 %d %d" width="%d" height="%d" role="img">`+"\n", -margin, width, c.height, width, c.height) +
		style + c.elements.String() + "</svg>\n"
}

// short writes a figure in little room: 1200 as 1.2k.
func short(n float64) string {
	switch abs := math.Abs(n); {
	case abs >= 1e9:
		return trim(n/1e9) + "G"
	case abs >= 1e6:
		return trim(n/1e6) + "M"
	case abs >= 1e3:
		return trim(n/1e3) + "k"
	default:
		return trim(n)
	}
}

func trim(n float64) string {
	if math.Abs(n) >= 10 {
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	return strconv.FormatFloat(n, 'g', 2, 64)
}
