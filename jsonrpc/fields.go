// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"bytes"
	"slices"
)

// fields are the header fields of a request that the transport decides by,
// taken from the header as it came over the wire: the HTTP library keeps only
// one of two contradicting fields and drops some that it has dealt with.
type fields struct {
	contentType      field
	contentEncoding  field
	contentLength    field
	transferEncoding field
	acceptEncoding   field
	connection       field
	expect           field
	upgrade          field
	origin           field
	preflightMethod  field
	preflightHeaders field
	authorization    field

	asked [maxAsked]field // in the order of the names that were given

	folded bool // a line continues the one before, which readers disagree on
}

// A field is the last value of a header field and how often it came.
type field struct {
	value []byte
	count int
}

// maxAsked is how many names the one pass over a header looks for on behalf of
// the Handler.
const maxAsked = 4

// readFields reads the lines of a header, and notes those of the asked names,
// which are in lower case. The result refers to raw.
func readFields(raw []byte, asked []string) (f fields) {
	for len(raw) > 0 {
		var line []byte
		if end := bytes.IndexByte(raw, '\n'); end >= 0 {
			line, raw = raw[:end], raw[end+1:]
		} else {
			line, raw = raw, nil
		}
		if len(line) > 0 && (line[0] == ' ' || line[0] == '\t') {
			f.folded = true
		}
		colon := bytes.IndexByte(line, ':')
		if colon < 0 {
			continue
		}
		if known := f.named(line[:colon]); known != nil {
			known.value = trim(line[colon+1:])
			known.count++
		} else if len(asked) > 0 {
			f.note(asked, line[:colon], line[colon+1:])
		}
	}
	return f
}

// note keeps the value of a field that the Handler asks for. Where it comes
// twice both values are kept, with a comma between as HTTP has it, so that a
// contradiction reaches the one who can tell.
func (f *fields) note(asked []string, name, value []byte) {
	for i, want := range asked {
		if !equalFold(name, want) {
			continue
		}
		if value = trim(value); value == nil {
			value = []byte{} // given, and empty
		}
		if f.asked[i].count++; f.asked[i].count > 1 {
			value = slices.Concat(f.asked[i].value, []byte(", "), value)
		}
		f.asked[i].value = value
		return
	}
}

// named returns the field for a name in any case, nil for one that does not
// matter here.
func (f *fields) named(name []byte) *field {
	known, field := "", (*field)(nil)
	switch len(name) {
	case 6:
		known, field = "expect", &f.expect
		if name[0]|0x20 == 'o' {
			known, field = "origin", &f.origin
		}
	case 7:
		known, field = "upgrade", &f.upgrade
	case 10:
		known, field = "connection", &f.connection
	case 12:
		known, field = "content-type", &f.contentType
	case 13:
		known, field = "authorization", &f.authorization
	case 14:
		known, field = "content-length", &f.contentLength
	case 15:
		known, field = "accept-encoding", &f.acceptEncoding
	case 16:
		known, field = "content-encoding", &f.contentEncoding
	case 17:
		known, field = "transfer-encoding", &f.transferEncoding
	case 29:
		known, field = "access-control-request-method", &f.preflightMethod
	case 30:
		known, field = "access-control-request-headers", &f.preflightHeaders
	}
	if field == nil || !equalFold(name, known) {
		return nil
	}
	return field
}

// equalFold reports whether text is lower, which is in lower case, in any case
// of ASCII letters.
func equalFold(text []byte, lower string) bool {
	if len(text) != len(lower) {
		return false
	}
	for i, c := range text {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// hasToken reports whether a comma-separated list holds a word in any case.
func hasToken(list []byte, lower string) bool {
	for len(list) > 0 {
		var token []byte
		token, list, _ = bytes.Cut(list, []byte{','})
		if equalFold(trim(token), lower) {
			return true
		}
	}
	return false
}

func trim(b []byte) []byte { return bytes.Trim(b, " \t\r") }
