// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"unicode/utf16"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// appendString appends text as a JSON string in valid UTF-8.
func appendString(dst []byte, text string) []byte {
	dst = append(dst, '"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}

// unescape appends the text of a valid JSON string whose quotes have been
// taken off. Half of a surrogate pair becomes U+FFFD, as in encoding/json.
func unescape(dst, quoted []byte) []byte {
	for i := 0; i < len(quoted); {
		if quoted[i] != '\\' {
			dst = append(dst, quoted[i])
			i++
			continue
		}
		escape := quoted[i+1]
		i += 2
		switch escape {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, width := unescapeRune(quoted[i:])
			dst = utf8.AppendRune(dst, r)
			i += width
		default:
			dst = append(dst, escape)
		}
	}
	return dst
}

// unescapeRune reads the digits after \u, and a whole second escape where the
// two are a surrogate pair.
func unescapeRune(s []byte) (r rune, width int) {
	first := hexRune(s[:4])
	if !utf16.IsSurrogate(first) {
		return first, 4
	}
	if len(s) >= 10 && s[4] == '\\' && s[5] == 'u' {
		if r := utf16.DecodeRune(first, hexRune(s[6:10])); r != utf8.RuneError {
			return r, 10
		}
	}
	return utf8.RuneError, 4
}

func hexRune(digits []byte) (r rune) {
	for _, c := range digits {
		d, _ := nibble(c)
		r = r<<4 | rune(d)
	}
	return r
}

func nibble(c byte) (value byte, ok bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
