// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// An answer is an HTTP response as it comes in. It knows as much of HTTP as the
// answers of JSON-RPC servers need: a length that is given, or chunks.
type answer struct {
	raw    []byte // what has come of it
	parsed int    // up to where raw has been understood

	status  int // 0 while the header is not complete
	chunked bool
	length  int // of the body, or of what remains of the chunk; -1 when not known
	ended   bool

	body    []byte
	ofChunk []byte // where body is kept when it has to be put together
}

var (
	errNoLength  = errors.New("answer has no length")
	errMalformed = errors.New("answer is not HTTP")
)

// reset makes room for the next answer, in the same memory.
func (a *answer) reset() {
	*a = answer{raw: a.raw[:0], ofChunk: a.ofChunk[:0], length: -1}
}

// complete takes in what was appended to raw. It reports whether that was the
// last of the answer, so that body is all of it.
func (a *answer) complete() (bool, error) {
	if a.status == 0 {
		if err := a.header(); err != nil || a.status == 0 {
			return false, err
		}
	}
	if a.chunked {
		return a.chunks()
	}
	if len(a.raw)-a.parsed < a.length {
		return false, nil
	}
	a.body = a.raw[a.parsed : a.parsed+a.length]
	return true, nil
}

var (
	headerEnd        = []byte("\r\n\r\n")
	lineEnd          = []byte("\r\n")
	contentLength    = []byte("content-length:")
	transferEncoding = []byte("transfer-encoding:")
)

// header understands the header once all of it is there.
func (a *answer) header() error {
	end := bytes.Index(a.raw, headerEnd)
	if end < 0 {
		return nil
	}
	line, rest, _ := bytes.Cut(a.raw[:end], lineEnd)
	if len(line) < len("HTTP/1.1 200") || !bytes.HasPrefix(line, []byte("HTTP/1.")) {
		return fmt.Errorf("%w: %.40q", errMalformed, line)
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil {
		return fmt.Errorf("%w: %.40q", errMalformed, line)
	}
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, lineEnd)
		if value, ok := field(line, contentLength); ok {
			if a.length, err = strconv.Atoi(string(value)); err != nil || a.length < 0 {
				return fmt.Errorf("%w: length %.20q", errMalformed, value)
			}
		} else if value, ok := field(line, transferEncoding); ok && bytes.EqualFold(value, []byte("chunked")) {
			a.chunked = true
		}
	}
	if a.chunked {
		a.length = -1
	} else if a.length < 0 {
		return errNoLength
	}
	a.status, a.parsed = status, end+len(headerEnd)
	return nil
}

// field returns the value of a header line if it has that name, in lower case
// and with its colon.
func field(line, name []byte) ([]byte, bool) {
	if len(line) < len(name) || !bytes.EqualFold(line[:len(name)], name) {
		return nil, false
	}
	return bytes.TrimSpace(line[len(name):]), true
}

// chunks takes in chunks as far as they have come.
func (a *answer) chunks() (bool, error) {
	for {
		if a.length >= 0 {
			// The data and the end of its line.
			if len(a.raw)-a.parsed < a.length+len(lineEnd) {
				return false, nil
			}
			a.ofChunk = append(a.ofChunk, a.raw[a.parsed:a.parsed+a.length]...)
			a.parsed += a.length + len(lineEnd)
			a.length = -1
			if a.ended {
				a.body = a.ofChunk
				return true, nil
			}
		}
		line, _, found := bytes.Cut(a.raw[a.parsed:], lineEnd)
		if !found {
			return false, nil
		}
		size, err := strconv.ParseUint(string(line), 16, 31)
		if err != nil {
			return false, fmt.Errorf("%w: chunk of size %.20q", errMalformed, line)
		}
		a.parsed += len(line) + len(lineEnd)
		a.length, a.ended = int(size), size == 0
	}
}

var errorMember = []byte(`"error"`)

// failure says what is wrong with a complete answer, or nothing.
func (a *answer) failure() string {
	if a.status == 200 && len(a.body) > 0 && !bytes.Contains(a.body, errorMember) {
		return ""
	}
	return fmt.Sprintf("status %d: %.300s", a.status, a.body)
}
