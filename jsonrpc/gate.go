// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"bytes"
	"time"
)

// A Gate decides who may ask. It is safe for concurrent use.
type Gate interface {
	// Admit returns the Ticket of a key; ok is false for one that is not
	// known. The key is valid until Admit returns.
	Admit(key []byte) (t Ticket, ok bool)
}

// A Ticket is what a known key entitles to. It is safe for concurrent use.
type Ticket interface {
	// Take reports whether n more calls may run now, and counts them if so;
	// otherwise wait is how long until they may.
	Take(n int) (wait time.Duration, ok bool)

	// Withdrawn reports whether the key is no longer known. It is asked
	// where a connection outlives the request that presented the key.
	Withdrawn() bool
}

// presentedKey returns the key of a request: that of the Authorization field,
// else the target without its slash and its query. It is nil where there is
// none, which includes an Authorization that is given twice or is not of a
// bearer.
func presentedKey(authorization *field, target []byte) []byte {
	if authorization.count == 0 {
		path, _, _ := bytes.Cut(target, []byte{'?'})
		if !isKeyPath(path) {
			return nil
		}
		return path[1:]
	}
	scheme, key, _ := bytes.Cut(authorization.value, []byte{' '})
	if authorization.count > 1 || !equalFold(scheme, "bearer") {
		return nil
	}
	return trim(key)
}

// isKeyPath reports whether a path could be a slash and a key.
func isKeyPath(path []byte) bool {
	return len(path) > 1 && path[0] == '/' && bytes.IndexByte(path[1:], '/') < 0
}

// admit asks the gate. Without a gate everybody may ask, and no ticket is
// needed.
func (s *Server) admit(authorization *field, target []byte) (Ticket, *refusal) {
	if s.options.Gate == nil {
		return nil, nil
	}
	key := presentedKey(authorization, target)
	if len(key) == 0 {
		s.counts.refusedKey.Add(1)
		return nil, refuseNoKey
	}
	t, ok := s.options.Gate.Admit(key)
	if !ok {
		s.counts.refusedKey.Add(1)
		return nil, refuseKey
	}
	return t, nil
}

// retrySeconds is a wait as Retry-After has it: whole seconds, at least one.
func retrySeconds(wait time.Duration) int {
	return max(1, int((wait+time.Second-1)/time.Second))
}
