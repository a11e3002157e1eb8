// SPDX-License-Identifier: Apache-2.0

package opstack

// FastLZSize returns the length of data when it is compressed with FastLZ at
// level 1, which is how chains from Fjord on estimate what a transaction takes
// up on the chain below. Only the length is of interest, so nothing is written.
func FastLZSize(data []byte) int {
	const (
		window  = 1<<13 - 1
		tailing = 13 // bytes at the end that no match begins in
		closing = 4  // bytes at the end that no match reaches into
	)
	var lastSeen [1 << 13]uint32 // by hash of three bytes: where they were last
	three := func(i int) uint32 {
		return uint32(data[i]) | uint32(data[i+1])<<8 | uint32(data[i+2])<<16
	}
	slot := func(v uint32) uint32 { return v * 2654435769 >> 19 }

	size, literalsFrom := 0, 0
	for i := 2; i < len(data)-tailing; {
		v := three(i)
		before := int(lastSeen[slot(v)])
		lastSeen[slot(v)] = uint32(i)
		if i-before > window || three(before) != v {
			i++
			continue
		}
		// The format's reference implementation does not take a match at the
		// last position that it looks at.
		if i+1 >= len(data)-tailing {
			break
		}
		size += literals(i - literalsFrom)
		length := 0
		for p, q := before+3, i+3; q < len(data)-closing; p, q = p+1, q+1 {
			// The byte that differs is counted too, as a match is one longer
			// than its count says.
			length++
			if data[p] != data[q] {
				break
			}
		}
		size += match(length)
		for _, at := range [2]int{i + length, i + length + 1} {
			lastSeen[slot(three(at))] = uint32(at)
		}
		i += length + 2
		literalsFrom = i
	}
	return size + literals(len(data)-literalsFrom)
}

// literals is what n bytes take that are copied as they are, in runs of 32 with
// one byte ahead of each.
func literals(n int) int {
	size := n / 32 * 33
	if rest := n % 32; rest != 0 {
		size += rest + 1
	}
	return size
}

// match is what a reference to n+2 earlier bytes takes.
func match(n int) int {
	n--
	size := n / 262 * 3
	if n%262 >= 6 {
		return size + 3
	}
	return size + 2
}
