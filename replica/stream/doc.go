// SPDX-License-Identifier: Apache-2.0

// Package stream carries the events of package replica over NATS: a Publisher
// on the writer's side, a Tail on each replica's.
//
// Durable events are messages of one JetStream stream with one subject,
// NAME.blocks. Each is published on the condition that the stream ends with the
// message before it, and under an id of its own, so that a message whose
// acknowledgement was lost is there once, two writers cannot interleave, and
// what a consumer reads is one chain of events. Nothing is kept in memory for it:
// the Publisher reads blocks from the writer's own store, and goes on from where
// the stream ends. So it makes no difference whether a block was sealed a moment
// ago or while NATS was away.
//
// Pending events are plain messages on NAME.pending, without JetStream. They are
// of use for a second, each names the sealed block that it stands on, and they
// say what they follow; so neither storage nor a common order with the blocks
// would add anything, and both would cost the writes and syncs of a stream for
// every flashblock. A replica that misses one sees it and waits for the next
// whole one, which comes at least every second.
//
// A writer that is alive answers on NAME.writer, where one that starts asks, so
// that two of them are noticed before they fight for the stream. On NAME.wanted
// replicas ask it for a snapshot.
//
// NATS is a transport and never the truth: what arrives is judged by
// replica.Applier.
package stream
