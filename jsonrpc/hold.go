// SPDX-License-Identifier: Apache-2.0

package jsonrpc

// A hold is the part of Options.MaxHeld that one connection has. Bodies and
// answers are in memory for as long as their client takes, so that without a
// common bound the limits of each of thousands of connections would add up to
// more than any machine has. The zero hold holds nothing; it is used by one
// goroutine.
type hold struct {
	bytes int64
}

// extend makes h at least n bytes, where s has room for them. What is small
// enough to be kept by a connection in any case is not counted.
func (h *hold) extend(s *Server, n int) bool {
	more := int64(n) - h.bytes
	if n <= keptPerConn || more <= 0 {
		return true
	}
	if !takeWithin(&s.counts.held, more, int64(s.options.MaxHeld)) {
		s.counts.refusedMemory.Add(1)
		return false
	}
	h.bytes += more
	return true
}

// release gives everything back.
func (h *hold) release(s *Server) {
	if h.bytes > 0 {
		s.counts.held.Add(-h.bytes)
		h.bytes = 0
	}
}
