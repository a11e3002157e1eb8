// SPDX-License-Identifier: Apache-2.0

package devchain

import "time"

// A clock says when what is due. Moments are counted from the beginning of a
// block, so that the work done in between does not shift them; those that were
// missed are left out.
type clock struct {
	blockTime, flashblockTime time.Duration
	paused                    bool

	sealAt  time.Time
	flashAt time.Time
}

type due int

const (
	nothing due = iota
	preconfirming
	sealing
)

// restart begins a block now.
func (c *clock) restart(now time.Time) {
	c.sealAt = now.Add(c.blockTime)
	c.flashAt = now.Add(c.flashblockTime)
}

// next returns when something is due. ok is false where nothing will be.
func (c *clock) next() (at time.Time, ok bool) {
	switch {
	case c.paused && c.flashblockTime == 0:
		return time.Time{}, false
	case c.paused:
		return c.flashAt, true
	case c.flashblockTime == 0 || !c.flashAt.Before(c.sealAt):
		return c.sealAt, true
	}
	return c.flashAt, true
}

// due prefers sealing: what waits then begins the next block.
func (c *clock) due(now time.Time) due {
	switch {
	case !c.paused && !now.Before(c.sealAt):
		return sealing
	case c.flashblockTime > 0 && !now.Before(c.flashAt):
		return preconfirming
	}
	return nothing
}

// sealed begins the next block when this one was due, or now if that is too
// long ago to catch up.
func (c *clock) sealed(now time.Time) {
	begin := c.sealAt
	if now.Sub(begin) >= c.blockTime {
		begin = now
	}
	c.restart(begin)
	c.skip(now)
}

func (c *clock) preconfirmed(now time.Time) {
	c.flashAt = c.flashAt.Add(c.flashblockTime)
	c.skip(now)
}

func (c *clock) skip(now time.Time) {
	if late := now.Sub(c.flashAt); c.flashblockTime > 0 && late > 0 {
		c.flashAt = c.flashAt.Add(late.Truncate(c.flashblockTime))
	}
}
