// SPDX-License-Identifier: Apache-2.0

package feed

import "time"

// A backoff says how long to wait before connecting again. A connection that was
// made is no reason to begin anew, only one that lasted is: a feed that accepts
// and hangs up would be called without pause otherwise.
type backoff struct {
	least, most time.Duration
	random      func() float64 // from 0 to 1

	last time.Duration // 0 after a healthy spell
}

// next returns a time between half of what is due and all of it, so that those
// whom one failure has cut off do not come back all at once.
func (b *backoff) next() time.Duration {
	b.last = min(max(b.least, 2*b.last), b.most)
	half := b.last / 2
	return half + time.Duration(b.random()*float64(half))
}

// healthy makes the next wait a short one.
func (b *backoff) healthy() { b.last = 0 }
