// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"time"

	"glimpse/ethapi"
	"glimpse/ops"
	"glimpse/replica"
	"glimpse/replica/stream"
)

// stats are the numbers of the stream's reader, zero before there is one.
func (n *replicaNode) stats() stream.TailStats {
	if t := n.tail.Load(); t != nil {
		return t.Stats()
	}
	return stream.TailStats{}
}

// noteAnswer keeps when NATS answered, for while there is no tail, or a new one.
func (n *replicaNode) noteAnswer(at time.Time) { n.answered.Store(&at) }

// facts are what readiness depends on.
func (n *replicaNode) facts() ops.ReplicaFacts {
	s := n.stats()
	f := ops.ReplicaFacts{
		Rebuilding: n.rebuilding.Load(), Connected: s.Connected,
		Behind: s.Behind, Blocks: s.Blocks, Answered: s.Answered, Heard: s.Heard, HeardHere: s.HeardHere,
		Limit: n.config.MaxLag, SilenceLimit: n.config.MaxSilence,
	}
	if store := n.current.Load(); store != nil {
		f.CaughtUp = store.caughtUp.Load()
	}
	if p := n.fetching.Load(); p != nil {
		f.Fetched, f.Fetching = p.Done, p.Total
	}
	if at := n.answered.Load(); at != nil && at.After(f.Answered) {
		f.Answered = *at
	}
	return f
}

// numbers are the metrics.
func (n *replicaNode) numbers() ops.Tailing {
	s := n.stats()
	named := func(outcomes map[replica.Outcome]uint64) map[string]uint64 {
		all := make(map[string]uint64, len(outcomes))
		for o, count := range outcomes {
			all[o.String()] = count
		}
		return all
	}
	return ops.Tailing{
		ReplicaFacts: n.facts(), Delay: s.Delay, Outcomes: named(s.Outcomes), PendingOutcome: named(s.PendingOutcomes),
		PendingLost: s.PendingLost, Malformed: s.Malformed, Restarts: s.Restarts, Rebuilds: n.rebuilds.Load(),
	}
}

// status is what glimpse_status tells beside what is in the snapshot.
func (n *replicaNode) status() ethapi.NodeStatus {
	s, f := n.stats(), n.facts()
	r := &ethapi.ReplicaStatus{
		Stream: n.name(), Connected: s.Connected, CaughtUp: f.CaughtUp && s.Live, Rebuilding: f.Rebuilding,
		Writer: s.Writer.Number, LagBlocks: s.Blocks, LagMs: s.Behind.Milliseconds(),
	}
	if f.Fetching > 0 {
		r.SnapshotBytes, r.SnapshotFetched = &f.Fetching, &f.Fetched
	}
	if !s.Heard.IsZero() {
		heard := max(time.Since(s.Heard), 0).Milliseconds()
		r.HeardMs = &heard
	}
	if s.LastError != nil && !(s.Connected && s.Live) {
		r.Error = s.LastError.Error()
	}
	return ethapi.NodeStatus{Source: "replica", Retention: "as the writer's", Replica: r}
}

// report logs when the replica has caught up, and what keeps it from that.
func (n *replicaNode) report(ctx context.Context) error {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	live, said := false, ""
	for {
		s := n.stats()
		switch {
		case s.Live && s.Connected && !live:
			n.config.Log.Info("caught up with the writer", "stream", n.name(), "block", s.Place.Number)
			live, said = true, ""
		case live && !(s.Live && s.Connected):
			n.config.Log.Warn("not in step with the writer", "stream", n.name(), "block", s.Place.Number, "writer", s.Writer.Number, "err", s.LastError)
			live = false
		case !live && s.LastError != nil && s.LastError.Error() != said:
			said = s.LastError.Error()
			n.config.Log.Warn("not in step with the writer", "stream", n.name(), "block", s.Place.Number, "err", s.LastError)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
