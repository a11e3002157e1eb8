// SPDX-License-Identifier: Apache-2.0

package apikey

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// The bounds of a file.
const (
	MaxKeys  = 100_000
	MaxBytes = 16 << 20
	MaxRate  = 1_000_000 // calls a second
)

const (
	minKey, maxKey = 16, 128
	maxName        = 32
	maxLine        = 1024 // far longer than a line can be and make sense
)

type digest = [sha256.Size]byte

// Keys are the keys of one file. They are immutable.
type Keys struct {
	entries []entry
}

// An entry is one line of the file. The key itself is not kept: what is not
// in memory cannot be printed.
type entry struct {
	name   string
	digest digest
	rate   int // calls a second, 0 for no limit
}

// Len returns how many keys there are.
func (k *Keys) Len() int { return len(k.entries) }

// Parse reads a file of keys. Each line is a name, a key and, where the key
// has one, its rate in calls a second, with space between; empty lines and
// those that begin with # are passed over.
//
// An error names the line that it is about, and never shows a key. A file
// without a key is an error: a node that nobody may ask is a mistake.
func Parse(r io.Reader) (*Keys, error) {
	limited := &io.LimitedReader{R: r, N: MaxBytes + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(make([]byte, 0, maxLine), maxLine)
	k := &Keys{}
	names, digests := make(map[string]int), make(map[digest]int)
	number := 0
	for lines.Scan() {
		number++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		e, err := parseLine(line)
		switch {
		case err != nil:
			return nil, fmt.Errorf("keys: line %d: %w", number, err)
		case names[e.name] > 0:
			return nil, fmt.Errorf("keys: line %d: the name %s is that of line %d", number, e.name, names[e.name])
		case digests[e.digest] > 0:
			return nil, fmt.Errorf("keys: line %d: the key is that of line %d", number, digests[e.digest])
		case len(k.entries) == MaxKeys:
			return nil, fmt.Errorf("keys: line %d: more than %d keys", number, MaxKeys)
		}
		names[e.name], digests[e.digest] = number, number
		k.entries = append(k.entries, e)
	}
	switch err := lines.Err(); {
	case limited.N <= 0:
		return nil, fmt.Errorf("keys: more than %d bytes", MaxBytes)
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("keys: line %d: longer than %d bytes", number+1, maxLine)
	case err != nil:
		return nil, fmt.Errorf("keys: line %d: %w", number+1, err)
	case len(k.entries) == 0:
		return nil, errors.New("keys: the file holds no key")
	}
	return k, nil
}

func parseLine(line []byte) (e entry, err error) {
	words := bytes.Fields(line)
	if len(words) != 2 && len(words) != 3 {
		return entry{}, fmt.Errorf("has %d words, want a name, a key and perhaps a rate", len(words))
	}
	if !isName(words[0]) {
		return entry{}, fmt.Errorf("a name is 1 to %d of a-z, 0-9 and -", maxName)
	}
	if !isKey(words[1]) {
		return entry{}, fmt.Errorf("a key is %d to %d of A-Z, a-z, 0-9, _ and -", minKey, maxKey)
	}
	e = entry{name: string(words[0]), digest: sha256.Sum256(words[1])}
	if len(words) == 3 {
		// The text of the error is left out: a key in the wrong place is a
		// key all the same.
		e.rate, err = strconv.Atoi(string(words[2]))
		if err != nil || e.rate < 1 || e.rate > MaxRate {
			return entry{}, fmt.Errorf("a rate is a whole number from 1 to %d", MaxRate)
		}
	}
	return e, nil
}

func isName(word []byte) bool {
	for _, c := range word {
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-') {
			return false
		}
	}
	return len(word) <= maxName
}

func isKey(word []byte) bool {
	for _, c := range word {
		if !('A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return minKey <= len(word) && len(word) <= maxKey
}
