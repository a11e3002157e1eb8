// SPDX-License-Identifier: Apache-2.0

// Package feed carries flashblocks from the sequencer to those who follow it.
//
// A Publisher sends each message to all subscribers: WebSocket clients, which it
// serves as an http.Handler, and subscribers in the same process, which get the
// same bytes and decode them in the same way. Nobody is waited for: a subscriber
// that does not keep up is disconnected, because a feed with holes that nobody
// was told of is worse than none.
//
// For those who test their software against pre-confirmations, a Schedule makes
// the feed misbehave on request.
//
// Run is the one goroutine that sends. Each WebSocket client has two more, which
// have ended when Run returns.
package feed
