// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"os"
	"slices"
	"strings"
)

// origins are the web pages that may connect over WebSocket. A browser lets a
// page connect to any host and says where the page is from; it is the server
// that has to refuse.
type origins struct {
	any   bool
	rules []origin
}

// An origin is where a page is from, in lower case. In a rule an empty part
// stands for anything.
type origin struct {
	scheme, host, port string
}

func newOrigins(names []string) origins {
	if len(names) == 0 {
		names = []string{"http://localhost"}
		// A machine that does not know its name is asked under others only.
		if name, err := os.Hostname(); err == nil && name != "" {
			names = append(names, "http://"+name)
		}
	}
	o := origins{any: slices.Contains(names, "*")}
	for _, name := range names {
		o.rules = append(o.rules, parseOrigin(name))
	}
	return o
}

// allow decides about an Origin field. More than one is no browser's doing.
func (o origins) allow(f field) bool {
	if f.count == 0 || o.any {
		return true
	}
	page := parseOrigin(string(f.value))
	if f.count > 1 || page.host == "" {
		return false
	}
	for _, rule := range o.rules {
		if (rule.scheme == "" || rule.scheme == page.scheme) &&
			rule.host == page.host &&
			(rule.port == "" || rule.port == page.port) {
			return true
		}
	}
	return false
}

func parseOrigin(text string) (o origin) {
	text = strings.ToLower(text)
	if scheme, rest, ok := strings.Cut(text, "://"); ok {
		o.scheme, text = scheme, rest
	}
	o.host = text
	if colon := strings.LastIndexByte(text, ':'); colon > strings.LastIndexByte(text, ']') {
		o.host, o.port = text[:colon], text[colon+1:]
	}
	return o
}
