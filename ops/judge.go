// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"
	"time"
)

// A Reason says why a node is not ready. The texts are read by machines.
type Reason string

// All the reasons there are.
const (
	Draining      Reason = "draining"        // it is about to stop
	Starting      Reason = "starting"        // it has nothing to answer from yet
	NoBlocks      Reason = "no-blocks"       // no sealed block for too long
	FeedSilent    Reason = "feed-silent"     // no flashblock for too long
	StoreError    Reason = "store-error"     // a read of the store failed a moment ago
	Rebuilding    Reason = "rebuilding"      // a replica's store is built anew from a snapshot
	CatchingUp    Reason = "catching-up"     // a replica is behind the writer
	Disconnected  Reason = "disconnected"    // a replica has heard nothing of its stream for too long
	WriterSilent  Reason = "writer-silent"   // a replica has heard nothing of its writer for too long
	NoPending     Reason = "no-pending"      // pending was asked about, and answers as latest
	LatestTooOld  Reason = "latest-too-old"  // latest is older than was asked for
	PendingTooOld Reason = "pending-too-old" // pending is older than was asked for
)

// Reasons returns all of them, in the order in which a Verdict has them.
func Reasons() []Reason {
	return []Reason{Draining, Starting, NoBlocks, FeedSilent, StoreError, Rebuilding, CatchingUp, Disconnected, WriterSilent, NoPending, LatestTooOld, PendingTooOld}
}

// A Query is what somebody needs the node to be ready for.
type Query struct {
	// Pending asks for pre-confirmed state, and MaxAge is about that; otherwise
	// MaxAge is about the latest block.
	Pending bool

	// MaxAge is how old it may be. Zero is any age.
	MaxAge time.Duration
}

// A Finding is one reason with what was found. Age and Limit are zero where time
// has nothing to do with it.
type Finding struct {
	Reason Reason
	Detail string
	Age    time.Duration
	Limit  time.Duration
}

// A Verdict is what was found against a node: all of it, not only the first.
type Verdict []Finding

// Ready reports whether nothing was.
func (v Verdict) Ready() bool { return len(v) == 0 }

// Judge decides whether a node of which f is known is ready for q. Something may
// be exactly as old as its limit.
func Judge(f Facts, q Query, now time.Time) Verdict {
	var v Verdict
	if f.Draining {
		v = append(v, Finding{Reason: Draining, Detail: "the node is about to stop"})
	}
	if f.Heads == nil {
		v = append(v, Finding{Reason: Starting, Detail: "there is no block to answer from yet"})
	}
	v.late(NoBlocks, "since the last sealed block", f.Blocks.silence(f.Started, now), f.Blocks.Limit)
	v.late(FeedSilent, "since the last flashblock", f.Feed.silence(f.Started, now), f.Feed.Limit)
	v.store(f.StoreFailure, now)
	if f.Replica != nil {
		v.replica(f.Replica, f.Started, now)
	}
	if f.Heads == nil {
		return v
	}
	switch {
	case !q.Pending:
		v.late(LatestTooOld, "since the latest block", latestAge(f, now), q.MaxAge)
	case f.Heads.Pending == nil:
		v = append(v, Finding{Reason: NoPending, Detail: "nothing is pre-confirmed; pending answers as latest"})
	default:
		v.late(PendingTooOld, "since pending became newer", pendingAge(f, now), q.MaxAge)
	}
	return v
}

// late finds an age against the node that is over its limit; zero is none.
func (v *Verdict) late(r Reason, since string, age, limit time.Duration) {
	if limit > 0 && age > limit {
		detail := fmt.Sprintf("%s %s, which is more than %s", readable(age), since, limit)
		*v = append(*v, Finding{Reason: r, Detail: detail, Age: age, Limit: limit})
	}
}

func (v *Verdict) store(s StoreFailure, now time.Time) {
	if s.At.IsZero() {
		return
	}
	if age := max(now.Sub(s.At), 0); age < s.Clears {
		detail := fmt.Sprintf("a read of the store failed %s ago: %s", readable(age), s.Text)
		*v = append(*v, Finding{Reason: StoreError, Detail: detail, Age: age, Limit: s.Clears})
	}
}

// replica finds what keeps a replica from answering as its writer does. That it is
// not at the end of the stream is one thing from the first moment on, until it has
// been there; later it may be behind for a while.
func (v *Verdict) replica(r *ReplicaFacts, started, now time.Time) {
	switch {
	case r.Rebuilding && r.Fetching > 0:
		detail := fmt.Sprintf("the store is made from a snapshot, of which %d of %d bytes are here", r.Fetched, r.Fetching)
		*v = append(*v, Finding{Reason: Rebuilding, Detail: detail})
	case r.Rebuilding:
		*v = append(*v, Finding{Reason: Rebuilding, Detail: "the store is made from a snapshot"})
	}
	if !r.CaughtUp {
		detail := fmt.Sprintf("%d blocks behind what was heard of the writer, and not at the end of the stream", r.Blocks)
		*v = append(*v, Finding{Reason: CatchingUp, Detail: detail})
	} else {
		v.late(CatchingUp, "behind the writer", r.Behind, r.Limit)
	}
	v.late(Disconnected, "since a server said something about the stream", Arrivals{Last: r.Answered}.silence(started, now), r.Limit)
	v.writer(r, now)
}

// writer finds that too long ago something was heard of the writer. It says
// something every second, so one that is silent is gone or cut off; while NATS is
// there, what the replica has is all that the writer has told anybody, and it is
// given time to come back. After NATS was away it is not known what it has sealed
// meanwhile.
func (v *Verdict) writer(r *ReplicaFacts, now time.Time) {
	if r.Heard.IsZero() {
		*v = append(*v, Finding{Reason: WriterSilent, Detail: "nothing was heard of the writer yet"})
		return
	}
	limit := r.SilenceLimit
	if !r.HeardHere {
		limit = r.Limit
	}
	v.late(WriterSilent, "since the writer was heard of", now.Sub(r.Heard), limit)
}

// latestAge returns how long ago the latest block arrived. Where it was here
// when the node started, nobody knows; it cannot be older than it says it is.
func latestAge(f Facts, now time.Time) time.Duration {
	if f.Blocks.Last.IsZero() {
		return max(now.Sub(f.Heads.Sealed), 0)
	}
	return f.Blocks.silence(f.Started, now)
}

func pendingAge(f Facts, now time.Time) time.Duration {
	return Arrivals{Last: f.Applied}.silence(f.Started, now)
}

func readable(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
