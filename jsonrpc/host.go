// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"bytes"
	"net/netip"
	"strings"
)

// hosts are the names under which a server may be asked. A page on another
// site can make a name of its own point at this machine, but it cannot choose
// what its browser sends as Host.
type hosts struct {
	any   bool
	names []string // lower case
}

func newHosts(names []string) (h hosts) {
	if names == nil {
		names = []string{"localhost"}
	}
	for _, name := range names {
		h.any = h.any || name == "*"
		h.names = append(h.names, strings.ToLower(name))
	}
	return h
}

// allow decides about the value of a Host field, with or without a port. Empty
// is allowed: only a client that is no browser sends it.
func (h hosts) allow(host []byte) bool {
	if h.any || len(host) == 0 {
		return true
	}
	if host[0] == '[' {
		name, port, closed := bytes.Cut(host[1:], []byte{']'})
		_, err := netip.ParseAddr(string(name))
		return closed && err == nil && bytes.IndexByte(name, ':') >= 0 && isPort(port)
	}
	name := host
	if colon := bytes.IndexByte(host, ':'); colon >= 0 {
		name = host[:colon]
		if !isPort(host[colon:]) {
			return false
		}
	}
	if isIPv4(name) {
		return true
	}
	for _, allowed := range h.names {
		if equalFold(name, allowed) {
			return true
		}
	}
	return false
}

// isPort reports whether text is a colon and digits, or nothing.
func isPort(text []byte) bool {
	if len(text) == 0 {
		return true
	}
	if text[0] != ':' {
		return false
	}
	for _, c := range text[1:] {
		if !isDigit(c) {
			return false
		}
	}
	return true
}

// isIPv4 reports whether text is four numbers up to 255 between dots. It is
// asked for every request, and netip.ParseAddr would cost garbage.
func isIPv4(text []byte) bool {
	parts, digits, value := 1, 0, 0
	for _, c := range text {
		switch {
		case c == '.' && digits > 0:
			parts, digits, value = parts+1, 0, 0
		case isDigit(c) && !(digits > 0 && value == 0):
			digits, value = digits+1, value*10+int(c-'0')
			if value > 255 {
				return false
			}
		default:
			return false
		}
	}
	return parts == 4 && digits > 0
}
