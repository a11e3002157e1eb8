// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import "bytes"

// A Value is the text of one JSON value, without space around it. It is a part
// of the request body and shares its lifetime: until Session.Call returns.
//
// The methods expect valid JSON, which every Value handed out here is.
type Value []byte

// IsNull reports whether v is null.
func (v Value) IsNull() bool { return len(v) > 0 && v[0] == 'n' }

// IsObject reports whether v is an object.
func (v Value) IsObject() bool { return len(v) > 0 && v[0] == '{' }

// Bool returns v as a truth value; ok is false where it is none.
func (v Value) Bool() (value, ok bool) {
	return len(v) > 0 && v[0] == 't', len(v) > 0 && (v[0] == 't' || v[0] == 'f')
}

// Text returns the text of a string; ok is false where v is not a string. A
// string without escapes is returned in place, so the result must not be
// modified and shares the lifetime of v.
func (v Value) Text() (text []byte, ok bool) {
	if len(v) < 2 || v[0] != '"' {
		return nil, false
	}
	text = v[1 : len(v)-1]
	if bytes.IndexByte(text, '\\') >= 0 {
		text = unescape(make([]byte, 0, len(text)), text)
	}
	return text, true
}

// Elements returns what is in an array; ok is false where v is not an array.
func (v Value) Elements() (elements Values, ok bool) {
	if len(v) == 0 || v[0] != '[' {
		return Values{}, false
	}
	return Values{rest: v[1:]}, true
}

// Values are the elements of an array that have not been taken yet, in order.
// The zero Values are empty.
type Values struct {
	rest []byte
}

// Next takes the next value; ok is false when there is none left.
func (vs *Values) Next() (v Value, ok bool) {
	rest := skipSpace(vs.rest)
	if len(rest) > 0 && rest[0] == ',' {
		rest = skipSpace(rest[1:])
	}
	if len(rest) == 0 || rest[0] == ']' {
		vs.rest = nil
		return nil, false
	}
	end := valueEnd(rest)
	vs.rest = rest[end:]
	return rest[:end], true
}

// members are the members of an object that have not been taken yet.
type members struct {
	rest []byte
}

// next takes the next member, with its name as Text returns it.
func (ms *members) next() (name []byte, v Value, ok bool) {
	rest := skipSpace(ms.rest)
	if len(rest) > 0 && rest[0] == ',' {
		rest = skipSpace(rest[1:])
	}
	if len(rest) == 0 || rest[0] == '}' {
		ms.rest = nil
		return nil, nil, false
	}
	end := valueEnd(rest)
	name, _ = Value(rest[:end]).Text() // valid JSON has a string here
	rest = skipSpace(skipSpace(rest[end:])[1:])
	end = valueEnd(rest)
	ms.rest = rest[end:]
	return name, rest[:end], true
}

// fewMembers is how many names are compared one by one before a map is worth
// its garbage.
const fewMembers = 8

// Members calls visit for each member of an object, in order and with decoded
// names, until visit returns an error. A value that is not an object and a
// name that comes twice are errors, so that no caller can take one of two
// contradicting members for the answer.
func (v Value) Members(visit func(name []byte, value Value) *Error) *Error {
	if !v.IsObject() {
		return InvalidParams("want an object")
	}
	var few [fewMembers][]byte
	var many map[string]struct{}
	rest := members{rest: v[1:]}
	for n := 0; ; n++ {
		name, value, ok := rest.next()
		if !ok {
			return nil
		}
		for i := range min(n, fewMembers) {
			if bytes.Equal(few[i], name) {
				return InvalidParams("duplicate member %.64q", name)
			}
		}
		if n < fewMembers {
			few[n] = name
		} else if many == nil {
			many = map[string]struct{}{string(name): {}}
		} else if _, seen := many[string(name)]; seen {
			return InvalidParams("duplicate member %.64q", name)
		} else {
			many[string(name)] = struct{}{}
		}
		if err := visit(name, value); err != nil {
			return err
		}
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func skipSpace(b []byte) []byte {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	return b
}

// valueEnd returns the length of the value that valid JSON begins with.
func valueEnd(b []byte) int {
	switch b[0] {
	case '"':
		return stringEnd(b)
	case '[', '{':
		return containerEnd(b)
	}
	for i, c := range b {
		if c == ',' || c == ']' || c == '}' || isSpace(c) {
			return i
		}
	}
	return len(b)
}

func stringEnd(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return len(b)
}

func containerEnd(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i += stringEnd(b[i:]) - 1
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(b)
}
