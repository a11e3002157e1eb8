// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	publishInCharge     = desc("publish_in_charge", "1 where this writer publishes to replicas, 0 where NATS is away or another writer has the stream; absent without --publish.")
	publishBlock        = desc("publish_block", "Number of the newest block in the stream; absent without --publish.")
	publishEvents       = desc("publish_events_total", "Blocks, reorganisations, tags and facts in the stream; absent without --publish.")
	publishMessages     = desc("publish_messages_total", "Messages in the stream; absent without --publish.")
	publishBytes        = desc("publish_bytes_total", "Bytes sent to replicas; absent without --publish.", "kind")
	publishRetries      = desc("publish_retries_total", "Messages sent again because their fate was not known; absent without --publish.")
	publishPending      = desc("publish_pending_total", "Events of pre-confirmed state, whole or what was added; absent without --publish.", "form")
	publishPendingLost  = desc("publish_pending_lost_total", "Events of pre-confirmed state not sent because NATS was away; absent without --publish.")
	publishFactsDropped = desc("publish_facts_dropped_total", "Facts of a sparse store that were not sent; absent without --publish.")

	snapshotsMade    = desc("snapshots_total", "Snapshots for replicas; absent where none are made.", "outcome")
	snapshotsDamaged = desc("snapshots_damaged_chunks_total", "Chunks of snapshots that were damaged or missing and had to be sent again; absent where none are made.")
	snapshotAge      = desc("snapshot_age_seconds", "Time since the newest snapshot; absent before the first.")
	snapshotBytes    = desc("snapshot_bytes", "Size of the newest snapshot; absent before the first.")
	snapshotBlock    = desc("snapshot_block", "Number of the block of the newest snapshot; absent before the first.")

	replicaConnected   = desc("replica_connected", "1 while the stream is being read; absent where this is no replica.")
	replicaCaughtUp    = desc("replica_caught_up", "1 while readers see all that the stream has; absent where this is no replica.")
	replicaRebuilding  = desc("replica_rebuilding", "1 while the store is built anew from a snapshot; absent where this is no replica.")
	replicaFetched     = desc("replica_snapshot_fetched_bytes", "How much is here of the snapshot that is downloaded; absent while none is.")
	replicaFetching    = desc("replica_snapshot_bytes", "Size of the snapshot that is downloaded; absent while none is.")
	replicaSilence     = desc("replica_writer_silence_seconds", "Time since the writer was heard of; absent before it was.")
	replicaLag         = desc("replica_lag_seconds", "For how long the replica has been behind the writer, 0 while it is not; absent where this is no replica.")
	replicaLagBlocks   = desc("replica_lag_blocks", "How many blocks the replica is behind the writer; absent where this is no replica.")
	replicaLagLimit    = desc("replica_lag_limit_seconds", "Lag from which the replica is unready; absent where this is no replica.")
	replicaDelay       = desc("replica_delay_seconds", "Time from the server's taking the last message to its being applied; absent where this is no replica.")
	replicaEvents      = desc("replica_events_total", "What became of events of the stream; absent where this is no replica.", "outcome")
	replicaPending     = desc("replica_pending_total", "What became of events of pre-confirmed state; absent where this is no replica.", "outcome")
	replicaPendingLost = desc("replica_pending_lost_total", "Messages of pre-confirmed state that were not taken in time; absent where this is no replica.")
	replicaMalformed   = desc("replica_malformed_total", "Messages that are none of a writer's; absent where this is no replica.")
	replicaRestarts    = desc("replica_restarts_total", "How often the stream was read again from an earlier place; absent where this is no replica.")
	replicaRebuilds    = desc("replica_rebuilds_total", "How often the store was built anew from a snapshot; absent where this is no replica.")
)

func replicationDescs() []*prometheus.Desc {
	return []*prometheus.Desc{
		publishInCharge, publishBlock, publishEvents, publishMessages, publishBytes, publishRetries, publishPending, publishPendingLost, publishFactsDropped,
		snapshotsMade, snapshotsDamaged, snapshotAge, snapshotBytes, snapshotBlock,
		replicaConnected, replicaCaughtUp, replicaRebuilding, replicaFetched, replicaFetching, replicaSilence, replicaLag, replicaLagBlocks, replicaLagLimit, replicaDelay,
		replicaEvents, replicaPending, replicaPendingLost, replicaMalformed, replicaRestarts, replicaRebuilds,
	}
}

// replicaOutcomes are what can become of an event at a replica.
var replicaOutcomes = []string{"applied", "known", "waiting", "outdated", "searching", "gap", "mismatch", "foreign", "failed"}

func collectReplication(to sink, r Replication, now time.Time) {
	if r.Publishing != nil {
		collectPublishing(to, r.Publishing, now)
	}
	if r.Tailing != nil {
		collectTailing(to, r.Tailing, now)
	}
}

func collectPublishing(to sink, p *Publishing, now time.Time) {
	to.is(publishInCharge, p.InCharge)
	to.put(publishBlock, number(p.Published))
	to.count(publishEvents, p.Events)
	to.count(publishMessages, p.Messages)
	to.count(publishBytes, p.Bytes, "blocks")
	to.count(publishBytes, p.PendingBytes, "pending")
	to.count(publishRetries, p.Retries)
	to.count(publishPending, p.PendingWhole, "whole")
	to.count(publishPending, p.PendingParts, "part")
	to.count(publishPendingLost, p.PendingLost)
	to.count(publishFactsDropped, p.FactsDropped)
	s := p.Snapshots
	if s == nil {
		return
	}
	to.count(publishBytes, s.Sent, "snapshots")
	to.count(snapshotsMade, s.Made, "made")
	to.count(snapshotsMade, s.Failed, "failed")
	to.count(snapshotsDamaged, s.Damaged)
	if !s.Last.IsZero() {
		to.put(snapshotAge, now.Sub(s.Last).Seconds())
		to.put(snapshotBytes, float64(s.Bytes))
		to.put(snapshotBlock, number(s.Block))
	}
}

func collectTailing(to sink, t *Tailing, now time.Time) {
	to.is(replicaConnected, t.Connected)
	to.is(replicaCaughtUp, t.CaughtUp)
	to.is(replicaRebuilding, t.Rebuilding)
	if t.Fetching > 0 {
		to.put(replicaFetched, float64(t.Fetched))
		to.put(replicaFetching, float64(t.Fetching))
	}
	if !t.Heard.IsZero() {
		to.put(replicaSilence, now.Sub(t.Heard).Seconds())
	}
	to.put(replicaLag, t.Behind.Seconds())
	to.put(replicaLagBlocks, float64(t.Blocks))
	to.put(replicaLagLimit, t.Limit.Seconds())
	to.put(replicaDelay, t.Delay.Seconds())
	for _, name := range replicaOutcomes {
		to.count(replicaEvents, t.Outcomes[name], name)
		to.count(replicaPending, t.PendingOutcome[name], name)
	}
	to.count(replicaPendingLost, t.PendingLost)
	to.count(replicaMalformed, t.Malformed)
	to.count(replicaRestarts, t.Restarts)
	to.count(replicaRebuilds, t.Rebuilds)
}

func (to sink) is(d *prometheus.Desc, yes bool) {
	value := 0.0
	if yes {
		value = 1
	}
	to.put(d, value)
}
