// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import "unicode/utf8"

// maxDepth is how deep arrays and objects may be nested.
const maxDepth = 128

// valid reports whether body is exactly one JSON value in UTF-8, not nested
// deeper than maxDepth. It accepts what encoding/json accepts within these
// bounds.
func valid(body []byte) bool {
	if !utf8.Valid(body) {
		return false
	}
	s := scanner{rest: skipSpace(body)}
	return s.value(0) && len(skipSpace(s.rest)) == 0
}

// A scanner checks values off the front of rest. Its recursion is bounded by
// maxDepth.
type scanner struct {
	rest []byte
}

func (s *scanner) value(depth int) bool {
	if len(s.rest) == 0 {
		return false
	}
	switch c := s.rest[0]; c {
	case '{':
		return depth < maxDepth && s.object(depth+1)
	case '[':
		return depth < maxDepth && s.array(depth+1)
	case '"':
		return s.string()
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		return s.number()
	}
}

func (s *scanner) object(depth int) bool {
	s.rest = skipSpace(s.rest[1:])
	if s.take('}') {
		return true
	}
	for {
		s.rest = skipSpace(s.rest)
		if !s.string() {
			return false
		}
		s.rest = skipSpace(s.rest)
		if !s.take(':') {
			return false
		}
		s.rest = skipSpace(s.rest)
		if !s.value(depth) {
			return false
		}
		s.rest = skipSpace(s.rest)
		if s.take('}') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

func (s *scanner) array(depth int) bool {
	s.rest = skipSpace(s.rest[1:])
	if s.take(']') {
		return true
	}
	for {
		s.rest = skipSpace(s.rest)
		if !s.value(depth) {
			return false
		}
		s.rest = skipSpace(s.rest)
		if s.take(']') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

func (s *scanner) string() bool {
	if !s.take('"') {
		return false
	}
	for i := 0; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '"':
			s.rest = s.rest[i+1:]
			return true
		case c < 0x20:
			return false
		case c == '\\':
			width := escapeWidth(s.rest[i+1:])
			if width == 0 {
				return false
			}
			i += width
		}
	}
	return false
}

// escapeWidth returns how long the escape is whose backslash precedes b, zero
// where there is none.
func escapeWidth(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	switch b[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 1
	case 'u':
		if len(b) < 5 {
			return 0
		}
		for _, c := range b[1:5] {
			if _, ok := nibble(c); !ok {
				return 0
			}
		}
		return 5
	}
	return 0
}

func (s *scanner) number() bool {
	s.take('-')
	if !s.take('0') && !s.digits() {
		return false
	}
	if s.take('.') && !s.digits() {
		return false
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		return s.digits()
	}
	return true
}

// digits takes one digit or more.
func (s *scanner) digits() bool {
	n := 0
	for n < len(s.rest) && isDigit(s.rest[n]) {
		n++
	}
	s.rest = s.rest[n:]
	return n > 0
}

func (s *scanner) literal(word string) bool {
	if len(s.rest) < len(word) || string(s.rest[:len(word)]) != word {
		return false
	}
	s.rest = s.rest[len(word):]
	return true
}

func (s *scanner) take(c byte) bool {
	if len(s.rest) == 0 || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
