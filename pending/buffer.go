// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"slices"
	"time"

	"glimpse/chain"
	"glimpse/flashblock"
)

// A build is the pieces that are here of one build of a block, whether or not
// they are applied: what is applied may have to be executed again.
type build struct {
	number   chain.Number
	payload  flashblock.PayloadID
	messages map[uint64]*flashblock.Message
	bytes    int

	begun   uint64    // counts up with every index 0 that came; 0 before
	arrived time.Time // when the newest piece came
	shown   uint64    // how many of its pieces were ever applied

	asleep     bool // expired: wait for another piece of it
	resting    bool // could not be read: wait for anything
	sealedOnly bool // failed on a parent that may not have been complete
}

func (b *build) parent() (hash chain.Hash, ok bool) {
	if first := b.messages[0]; first != nil {
		return first.Base.ParentHash, true
	}
	return chain.Hash{}, false
}

// A buffer holds builds within bounds.
type buffer struct {
	builds []*build // in the order in which they came
	void   []buildKey
	bytes  int
	begun  uint64
}

type buildKey struct {
	number  chain.Number
	payload flashblock.PayloadID
}

// The bounds on what a feed can make us keep beside bytes: builds, of which
// there are seldom more than two for a block, and names of void ones.
const (
	maxBuilds = 32
	maxVoid   = 128
)

func (b *buffer) find(number chain.Number, payload flashblock.PayloadID) *build {
	for _, x := range b.builds {
		if x.number == number && x.payload == payload {
			return x
		}
	}
	return nil
}

func (b *buffer) held(m *flashblock.Message) bool {
	x := b.find(m.Number, m.Payload)
	return x != nil && x.messages[m.Index] != nil
}

func (b *buffer) isVoid(m *flashblock.Message) bool {
	return slices.Contains(b.void, buildKey{m.Number, m.Payload})
}

// add keeps m; nil where there is no room. The spare builds are those that may be
// given up for it.
func (b *buffer) add(m *flashblock.Message, now time.Time, maxBytes int, spare func(*build) bool) *build {
	if b.bytes+m.Size() > maxBytes {
		return nil
	}
	x := b.find(m.Number, m.Payload)
	if x == nil {
		if len(b.builds) >= maxBuilds && !b.giveUp(spare) {
			return nil
		}
		x = &build{number: m.Number, payload: m.Payload, messages: make(map[uint64]*flashblock.Message)}
		b.builds = append(b.builds, x)
	}
	x.messages[m.Index] = m
	x.bytes += m.Size()
	b.bytes += m.Size()
	x.arrived, x.asleep = now, false
	if m.Index == 0 {
		b.begun++
		x.begun = b.begun
	}
	return x
}

// giveUp drops the oldest spare build.
func (b *buffer) giveUp(spare func(*build) bool) bool {
	for _, x := range b.builds {
		if spare(x) {
			b.remove(func(y *build) bool { return y == x })
			return true
		}
	}
	return false
}

func (b *buffer) remove(which func(*build) bool) {
	b.builds = slices.DeleteFunc(b.builds, func(x *build) bool {
		if !which(x) {
			return false
		}
		b.bytes -= x.bytes
		return true
	})
}

// ban drops a build and remembers not to take it again.
func (b *buffer) ban(x *build) {
	b.remove(func(y *build) bool { return y == x })
	if len(b.void) == maxVoid {
		b.void = slices.Delete(b.void, 0, 1)
	}
	b.void = append(b.void, buildKey{x.number, x.payload})
}

// sealed forgets what is not above the sealed block n.
func (b *buffer) sealed(n chain.Number) {
	b.remove(func(x *build) bool { return x.number <= n })
	b.void = slices.DeleteFunc(b.void, func(k buildKey) bool { return k.number <= n })
	b.retry(n) // the parent of what failed may be the sealed one now
}

// retry lets builds above n that failed be executed again.
func (b *buffer) retry(n chain.Number) {
	for _, x := range b.builds {
		if x.number > n {
			x.sealedOnly = false
		}
	}
}
