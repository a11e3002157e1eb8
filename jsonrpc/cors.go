// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"slices"

	"github.com/valyala/fasthttp"
)

// cors are the origins whose pages may read answers. The zero cors is none.
type cors struct {
	any     bool
	origins []string
}

func newCORS(origins []string) cors {
	return cors{any: slices.Contains(origins, "*"), origins: origins}
}

// mark says in the response that the page may read it, where it may.
func (c cors) mark(h *fasthttp.ResponseHeader, origin []byte) (allowed bool) {
	switch {
	case len(origin) == 0 || len(c.origins) == 0:
		return false
	case c.any:
		h.Set("Access-Control-Allow-Origin", "*")
		return true
	}
	h.Add("Vary", "Origin")
	if !slices.Contains(c.origins, string(origin)) {
		return false
	}
	h.SetBytesV("Access-Control-Allow-Origin", origin)
	return true
}

// preflight answers the question a browser asks before it posts JSON. Which
// header fields the page may send is of no concern here: all that matter are
// open to any client.
func (c cors) preflight(h *fasthttp.ResponseHeader, f *fields) {
	h.Set("Access-Control-Allow-Methods", "POST")
	h.Set("Access-Control-Max-Age", "600")
	if f.preflightHeaders.count > 0 {
		h.SetBytesV("Access-Control-Allow-Headers", f.preflightHeaders.value)
	}
}
