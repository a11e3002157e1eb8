// SPDX-License-Identifier: Apache-2.0

package ops_test

import (
	"slices"
	"testing"
	"time"

	"glimpse/chain"
	"glimpse/ops"
)

// healthy returns Facts against which nothing can be found at this time.
func healthy(now time.Time) ops.Facts {
	return ops.Facts{
		Started: now.Add(-time.Hour),
		Heads: &ops.Heads{
			Latest:  chain.Ref{Number: 100, Hash: chain.Hash{1}},
			Sealed:  now.Add(-2 * time.Second),
			Pending: &ops.Preconfirmed{Number: 101, Index: 3},
		},
		Blocks:  ops.Arrivals{Last: now.Add(-time.Second), Limit: 10 * time.Second},
		Feed:    ops.Arrivals{Last: now.Add(-100 * time.Millisecond), Limit: time.Second},
		Applied: now.Add(-100 * time.Millisecond),
	}
}

var judgements = []struct {
	name   string
	change func(f *ops.Facts, now time.Time)
	query  ops.Query
	want   []ops.Reason
}{
	{name: "a healthy node"},
	{name: "a healthy node that must have pending", query: ops.Query{Pending: true, MaxAge: time.Second}},
	{name: "a healthy node that must have a new latest", query: ops.Query{MaxAge: 30 * time.Second}},
	{
		name:   "a node that drains",
		change: func(f *ops.Facts, _ time.Time) { f.Draining = true },
		want:   []ops.Reason{ops.Draining},
	}, {
		name:   "a node without a block",
		change: func(f *ops.Facts, _ time.Time) { f.Heads = nil },
		want:   []ops.Reason{ops.Starting},
	}, {
		name:   "a node without a block that must have pending",
		change: func(f *ops.Facts, _ time.Time) { f.Heads = nil },
		query:  ops.Query{Pending: true},
		want:   []ops.Reason{ops.Starting},
	}, {
		name:   "a block exactly as old as it may be",
		change: func(f *ops.Facts, now time.Time) { f.Blocks.Last = now.Add(-10 * time.Second) },
	}, {
		name:   "a block too old",
		change: func(f *ops.Facts, now time.Time) { f.Blocks.Last = now.Add(-10*time.Second - 1) },
		want:   []ops.Reason{ops.NoBlocks},
	}, {
		name:   "no block since a start long ago",
		change: func(f *ops.Facts, _ time.Time) { f.Blocks.Last = time.Time{} },
		want:   []ops.Reason{ops.NoBlocks},
	}, {
		name: "no block since a start just now",
		change: func(f *ops.Facts, now time.Time) {
			f.Blocks.Last, f.Started = time.Time{}, now.Add(-time.Second)
		},
	}, {
		name: "no block where none is expected",
		change: func(f *ops.Facts, _ time.Time) {
			f.Blocks = ops.Arrivals{}
		},
	}, {
		name:   "a feed silent for as long as it may be",
		change: func(f *ops.Facts, now time.Time) { f.Feed.Last = now.Add(-time.Second) },
	}, {
		name:   "a feed silent for too long",
		change: func(f *ops.Facts, now time.Time) { f.Feed.Last = now.Add(-time.Second - 1) },
		want:   []ops.Reason{ops.FeedSilent},
	}, {
		name:   "no feed where none is expected",
		change: func(f *ops.Facts, _ time.Time) { f.Feed = ops.Arrivals{} },
	}, {
		name: "a read that failed a moment ago",
		change: func(f *ops.Facts, now time.Time) {
			f.StoreFailure = ops.StoreFailure{At: now.Add(-9 * time.Second), Text: "disk", Clears: 10 * time.Second}
		},
		want: []ops.Reason{ops.StoreError},
	}, {
		name: "a read that failed in this instant",
		change: func(f *ops.Facts, now time.Time) {
			f.StoreFailure = ops.StoreFailure{At: now, Text: "disk", Clears: 10 * time.Second}
		},
		want: []ops.Reason{ops.StoreError},
	}, {
		name: "a read that failed long enough ago",
		change: func(f *ops.Facts, now time.Time) {
			f.StoreFailure = ops.StoreFailure{At: now.Add(-10 * time.Second), Text: "disk", Clears: 10 * time.Second}
		},
	}, {
		name:   "nothing pre-confirmed where pending is asked for",
		change: func(f *ops.Facts, _ time.Time) { f.Heads.Pending = nil },
		query:  ops.Query{Pending: true},
		want:   []ops.Reason{ops.NoPending},
	}, {
		name:   "nothing pre-confirmed where nobody asked",
		change: func(f *ops.Facts, _ time.Time) { f.Heads.Pending = nil },
	}, {
		name:  "latest older than asked for",
		query: ops.Query{MaxAge: time.Second - 1},
		want:  []ops.Reason{ops.LatestTooOld},
	}, {
		name:  "latest exactly as old as asked for",
		query: ops.Query{MaxAge: time.Second},
	}, {
		name: "latest of before the start is as old as it says",
		change: func(f *ops.Facts, now time.Time) {
			f.Blocks = ops.Arrivals{}
			f.Heads.Sealed, f.Started = now.Add(-24*time.Hour), now
		},
		query: ops.Query{MaxAge: time.Hour},
		want:  []ops.Reason{ops.LatestTooOld},
	}, {
		name:  "pending older than asked for",
		query: ops.Query{Pending: true, MaxAge: 99 * time.Millisecond},
		want:  []ops.Reason{ops.PendingTooOld},
	}, {
		name:  "pending exactly as old as asked for",
		query: ops.Query{Pending: true, MaxAge: 100 * time.Millisecond},
	}, {
		name: "a feed that talks but adds nothing to pending",
		change: func(f *ops.Facts, now time.Time) {
			f.Applied = now.Add(-2 * time.Second)
		},
		query: ops.Query{Pending: true, MaxAge: time.Second},
		want:  []ops.Reason{ops.PendingTooOld},
	}, {
		name:   "a replica in step",
		change: func(f *ops.Facts, now time.Time) { f.Replica = inStep(now) },
	}, {
		name: "a replica that has never been at the end of the stream",
		change: func(f *ops.Facts, now time.Time) {
			f.Replica = inStep(now)
			f.Replica.CaughtUp = false
		},
		want: []ops.Reason{ops.CatchingUp},
	}, {
		name: "a replica that is behind for as long as it may be",
		change: func(f *ops.Facts, now time.Time) {
			f.Replica = inStep(now)
			f.Replica.Behind, f.Replica.Blocks = f.Replica.Limit, 3
		},
	}, {
		name: "a replica that is behind for longer",
		change: func(f *ops.Facts, now time.Time) {
			f.Replica = inStep(now)
			f.Replica.Behind, f.Replica.Blocks = f.Replica.Limit+1, 3
		},
		want: []ops.Reason{ops.CatchingUp},
	}, {
		name: "a replica that nobody answers",
		change: func(f *ops.Facts, now time.Time) {
			f.Replica = inStep(now)
			f.Replica.Answered = now.Add(-f.Replica.Limit - 1)
		},
		want: []ops.Reason{ops.Disconnected},
	}, {
		name: "a replica that nobody has answered since it started a moment ago",
		change: func(f *ops.Facts, now time.Time) {
			f.Replica = inStep(now)
			f.Replica.Answered, f.Started = time.Time{}, now.Add(-time.Second)
		},
	}, {
		name: "a replica whose store is built anew",
		change: func(f *ops.Facts, now time.Time) {
			f.Replica = inStep(now)
			f.Replica.Rebuilding = true
		},
		want: []ops.Reason{ops.Rebuilding},
	}, {
		name: "a replica that has no store yet",
		change: func(f *ops.Facts, now time.Time) {
			f.Heads = nil
			f.Replica = &ops.ReplicaFacts{Rebuilding: true, Fetched: 1, Fetching: 2, Answered: now, Limit: time.Second}
		},
		want: []ops.Reason{ops.Starting, ops.Rebuilding, ops.CatchingUp, ops.WriterSilent},
	}, {
		name: "a replica whose writer is away for as long as it may be",
		change: func(f *ops.Facts, now time.Time) {
			f.Replica = inStep(now)
			f.Replica.Heard = now.Add(-f.Replica.SilenceLimit)
		},
	}, {
		name: "a replica whose writer is away for longer",
		change: func(f *ops.Facts, now time.Time) {
			f.Replica = inStep(now)
			f.Replica.Heard = now.Add(-f.Replica.SilenceLimit - 1)
		},
		want: []ops.Reason{ops.WriterSilent},
	}, {
		name: "a replica whose writer may be away for any time",
		change: func(f *ops.Facts, now time.Time) {
			f.Replica = inStep(now)
			f.Replica.Heard, f.Replica.SilenceLimit = now.Add(-time.Hour), 0
		},
	}, {
		name: "a replica that has found the stream again and not heard of the writer since",
		change: func(f *ops.Facts, now time.Time) {
			f.Replica = inStep(now)
			f.Replica.Heard, f.Replica.HeardHere = now.Add(-f.Replica.Limit-1), false
		},
		want: []ops.Reason{ops.WriterSilent},
	}, {
		name: "a replica that has just lost the stream",
		change: func(f *ops.Facts, now time.Time) {
			f.Replica = inStep(now)
			f.Replica.Heard, f.Replica.HeardHere = now.Add(-f.Replica.Limit), false
		},
	}, {
		name: "a replica that has never heard of its writer",
		change: func(f *ops.Facts, now time.Time) {
			f.Replica = inStep(now)
			f.Replica.Heard = time.Time{}
		},
		want: []ops.Reason{ops.WriterSilent},
	}, {
		name: "everything at once",
		change: func(f *ops.Facts, now time.Time) {
			*f = ops.Facts{
				Draining: true, Started: now.Add(-time.Hour), Heads: &ops.Heads{},
				Blocks: ops.Arrivals{Limit: 1}, Feed: ops.Arrivals{Limit: 1},
				StoreFailure: ops.StoreFailure{At: now, Clears: time.Second},
				Replica:      &ops.ReplicaFacts{Rebuilding: true, Limit: time.Second},
			}
		},
		query: ops.Query{Pending: true},
		want: []ops.Reason{
			ops.Draining, ops.NoBlocks, ops.FeedSilent, ops.StoreError, ops.Rebuilding, ops.CatchingUp, ops.Disconnected, ops.WriterSilent, ops.NoPending,
		},
	},
}

// inStep is a replica against which there is nothing.
func inStep(now time.Time) *ops.ReplicaFacts {
	return &ops.ReplicaFacts{
		CaughtUp: true, Connected: true, Answered: now.Add(-time.Second), Heard: now.Add(-time.Second), HeardHere: true,
		Limit: 5 * time.Second, SilenceLimit: time.Minute,
	}
}

func TestJudge(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, tt := range judgements {
		t.Run(tt.name, func(t *testing.T) {
			f := healthy(now)
			if tt.change != nil {
				tt.change(&f, now)
			}
			v := ops.Judge(f, tt.query, now)
			var got []ops.Reason
			for _, finding := range v {
				got = append(got, finding.Reason)
				if finding.Detail == "" {
					t.Errorf("%s says no more", finding.Reason)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("reasons: got %v, want %v", got, tt.want)
			}
			if v.Ready() != (len(tt.want) == 0) {
				t.Errorf("ready: got %v with reasons %v", v.Ready(), got)
			}
		})
	}
}

func TestEveryReasonIsJudgedAlone(t *testing.T) {
	for _, r := range ops.Reasons() {
		alone := false
		for _, tt := range judgements {
			alone = alone || slices.Equal(tt.want, []ops.Reason{r})
		}
		if !alone {
			t.Errorf("no test has %s as the only reason", r)
		}
	}
}

// A clock that is set back, or a chain that runs ahead of it, is no age.
func TestNothingIsYoungerThanNow(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	f := healthy(now)
	f.Blocks.Last, f.Feed.Last, f.Applied = now.Add(time.Hour), now.Add(time.Hour), now.Add(time.Hour)
	f.StoreFailure = ops.StoreFailure{At: now.Add(time.Hour), Clears: time.Second}
	v := ops.Judge(f, ops.Query{Pending: true, MaxAge: time.Second}, now)
	if len(v) != 1 || v[0].Reason != ops.StoreError || v[0].Age != 0 {
		t.Errorf("got %+v, want only the store, just now", v)
	}
}
