// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"bytes"
	"strings"

	"github.com/valyala/fasthttp"
)

// askedFields are the header fields of a request as the Handler sees them.
// Those of Options.Headers were found in the one pass that every header gets,
// so asking for one that is absent costs next to nothing. The zero askedFields
// are an empty header.
type askedFields struct {
	names  []string // as the Handler writes them
	values [maxAsked][]byte
	rest   *fasthttp.RequestHeader // nil where only the values are known
}

func (a *askedFields) take(s *Server, f *fields, rest *fasthttp.RequestHeader) {
	a.names, a.rest = s.options.Headers[:len(s.asked)], rest
	for i := range a.names {
		a.values[i] = f.asked[i].value
	}
}

// forget drops what is held of the request.
func (a *askedFields) forget() {
	clear(a.values[:len(a.names)])
	a.names, a.rest = nil, nil
}

// clone returns the values alone, in memory of their own.
func (a *askedFields) clone() askedFields {
	c := askedFields{names: a.names}
	for i, value := range a.values {
		c.values[i] = bytes.Clone(value)
	}
	return c
}

// Peek implements Header.
func (a *askedFields) Peek(name string) []byte {
	for i, known := range a.names {
		if known == name {
			return a.values[i]
		}
	}
	for i, known := range a.names {
		if strings.EqualFold(known, name) {
			return a.values[i]
		}
	}
	if a.rest == nil {
		return nil
	}
	return a.rest.Peek(name)
}
