// SPDX-License-Identifier: Apache-2.0

package apikey

import (
	"sync/atomic"
	"time"
)

// A Ticket is the right to ask that comes with a key. It is safe for
// concurrent use and makes no garbage.
//
// The rate is kept with one number, the time at which all that was admitted
// would have been done had it come evenly spread (the generic cell rate
// algorithm). A call is admitted while that time is less than a second ahead,
// so a second's worth of calls may come at once.
type Ticket struct {
	name   string
	digest digest
	born   time.Time // what paidUntil counts from, on the monotonic clock

	withdrawn atomic.Bool
	interval  atomic.Int64 // nanoseconds from one call to the next, 0 for no limit
	paidUntil atomic.Int64 // nanoseconds since born
}

func (t *Ticket) setRate(rate int) {
	interval := int64(0)
	if rate > 0 {
		interval = int64(time.Second) / int64(rate)
	}
	t.interval.Store(interval)
}

// Name returns what the file calls the key. It is no secret.
func (t *Ticket) Name() string { return t.name }

// Withdrawn reports whether the key is no longer in force.
func (t *Ticket) Withdrawn() bool { return t.withdrawn.Load() }

// Take reports whether n more calls may run now, and counts them if so;
// otherwise wait is how long until they may, if nothing else is admitted.
//
// More calls at once than a second is worth are admitted when nothing is owed,
// and nothing more until they are paid for: a batch that is longer than the
// rate would otherwise never be.
func (t *Ticket) Take(n int) (wait time.Duration, ok bool) {
	interval := t.interval.Load()
	if interval == 0 || n <= 0 {
		return 0, true
	}
	cost := int64(n) * interval
	burst := max(int64(time.Second), cost)
	for {
		now := int64(time.Since(t.born))
		paid := t.paidUntil.Load()
		from := max(paid, now)
		if ahead := from + cost - now; ahead > burst {
			return time.Duration(ahead - burst), false
		}
		if t.paidUntil.CompareAndSwap(paid, from+cost) {
			return 0, true
		}
	}
}
