// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"strconv"

	"glimpse/jsonrpc"
)

// How many entries a page has.
const (
	defaultPage = 1_000
	maxPage     = 10_000
)

// A page is which part of a long answer a caller wants.
type page[T any] struct {
	limit int
	after *T // where the page before ended; nil for the first
}

// takePage takes an optional page parameter, {"limit", "after"}.
func takePage[T any](a *arguments, token func(jsonrpc.Value) (T, string)) page[T] {
	p := page[T]{limit: defaultPage}
	v, given := a.next()
	if !given {
		return p
	}
	bad := v.Members(func(name []byte, value jsonrpc.Value) *jsonrpc.Error {
		switch string(name) {
		case "limit":
			return assign(&p.limit, name, value, parseLimit)
		case "after":
			return assign(&p.after, name, value, pointer(token))
		}
		return jsonrpc.InvalidParams("unknown member %q", clip(name))
	})
	if bad != nil {
		a.refuse("page", bad.Message)
	}
	return p
}

func parseLimit(v jsonrpc.Value) (limit int, why string) {
	n, why := parseUint64(v)
	if why == "" && (n == 0 || n > maxPage) {
		why = "want 1 to " + strconv.Itoa(maxPage)
	}
	if why != "" {
		return 0, why
	}
	return int(n), ""
}
