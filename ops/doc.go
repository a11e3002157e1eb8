// SPDX-License-Identifier: Apache-2.0

// Package ops is what an operator sees of a node: metrics, health, a status
// page, and the HTTP server for them.
//
// Metrics counts. What happens often (a call) has counters of its own, because
// those of the Prometheus client cost ten times as much where several cores
// count at once; what can be looked up (a head, a size) is asked for when
// somebody scrapes. Every label has a closed set of values, whatever callers
// send.
//
// Health remembers when things last arrived. Judge is the decision whether the
// node is ready, as a pure function of these Facts, with a closed list of
// Reasons.
//
// Serve answers on a listener of its own, apart from JSON-RPC: it must still
// answer when that has no connection left, and while it drains. Package ops
// starts no goroutine but in Serve, and all that is exported is safe for
// concurrent use.
package ops
