// SPDX-License-Identifier: Apache-2.0

package apikey

import (
	"crypto/sha256"
	"crypto/subtle"
	"sync"
	"sync/atomic"
	"time"
)

// A Ring holds the keys in force. It is safe for concurrent use; Admit waits
// for nobody.
type Ring struct {
	mu      sync.Mutex // held by Replace
	tickets atomic.Pointer[map[digest]*Ticket]
}

// NewRing returns a Ring of k.
func NewRing(k *Keys) *Ring {
	r := &Ring{}
	r.Replace(k)
	return r
}

// Replace puts k in force. A key that stays, under the same name, stays where
// it is with its rate: reloading a file is no way to ask more often. The
// tickets of keys that are gone are withdrawn.
func (r *Ring) Replace(k *Keys) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.tickets.Load()
	after := make(map[digest]*Ticket, len(k.entries))
	for _, e := range k.entries {
		t := &Ticket{name: e.name, digest: e.digest, born: time.Now()}
		if before != nil {
			if old, ok := (*before)[e.digest]; ok && old.name == e.name {
				t = old
			}
		}
		t.setRate(e.rate)
		after[e.digest] = t
	}
	r.tickets.Store(&after)
	if before == nil {
		return
	}
	for d, t := range *before {
		if after[d] != t {
			t.withdrawn.Store(true)
		}
	}
}

// Admit returns the ticket of a key; ok is false for a key that is not in
// force.
//
// A lookup in a map takes a time that depends on what is looked up, and
// comparing secrets that way would let a caller guess one byte by byte. What is
// looked up here is the SHA-256 of the key: a caller who varies a key cannot
// steer its digest towards another one, so what the time tells about a digest
// leads to no key. The digest that is found is then compared in constant time,
// and the time of hashing depends on the length of what the caller sent, which
// the caller knows.
func (r *Ring) Admit(key []byte) (t *Ticket, ok bool) {
	if len(key) > maxKey {
		return nil, false
	}
	d := sha256.Sum256(key)
	t, ok = (*r.tickets.Load())[d]
	if !ok || subtle.ConstantTimeCompare(t.digest[:], d[:]) != 1 {
		return nil, false
	}
	return t, true
}
