// SPDX-License-Identifier: Apache-2.0

package table

import (
	"fmt"
	"strings"
)

// A Table has a header and rows of the same width.
type Table struct {
	header []string
	rows   [][]string
}

// New returns a table without rows.
func New(header ...string) *Table { return &Table{header: header} }

// Add adds a row. Missing cells are empty, and what there is too much is dropped.
func (t *Table) Add(cells ...string) {
	row := make([]string, len(t.header))
	copy(row, cells)
	t.rows = append(t.rows, row)
}

// String returns the table in Markdown, without an empty line before or after.
func (t *Table) String() string {
	var out strings.Builder
	write := func(cells []string) {
		for _, c := range cells {
			out.WriteString("| " + escape(c) + " ")
		}
		out.WriteString("|\n")
	}
	write(t.header)
	out.WriteString(strings.Repeat("|---", len(t.header)) + "|\n")
	for _, row := range t.rows {
		write(row)
	}
	return out.String()
}

func escape(cell string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(cell)
}

// Replace puts text between two marker lines of a document, in place of what is
// there. Both markers must be there once, in their order.
func Replace(document, begin, end, text string) (string, error) {
	if strings.Count(document, begin) != 1 || strings.Count(document, end) != 1 {
		return "", fmt.Errorf("want the markers %s and %s once each", begin, end)
	}
	before, rest, _ := strings.Cut(document, begin)
	_, after, found := strings.Cut(rest, end)
	if !found {
		return "", fmt.Errorf("want the marker %s before %s", begin, end)
	}
	return before + begin + "\n" + strings.TrimRight(text, "\n") + "\n" + end + after, nil
}
