// SPDX-License-Identifier: Apache-2.0

// Package feed carries flashblocks from the sequencer to those who follow it.
//
// A Publisher sends each message to all subscribers: WebSocket clients, which it
// serves as an http.Handler, and subscribers in the same process, which get the
// same bytes and decode them in the same way. Nobody is waited for: a subscriber
// that does not keep up is disconnected, because a feed with holes that nobody
// was told of is worse than none.
//
// A Client follows one or several feeds over WebSocket. It trusts them with
// nothing: neither with memory, nor to say that they are gone, nor to say the same
// as each other. Each flashblock is delivered once, whichever feed brought it
// first; trouble in one feed delays no other, and is counted and told, not logged.
//
// Record writes a feed to a file and Replay publishes it again.
//
// For those who test their software against pre-confirmations, a Schedule makes
// the feed misbehave on request.
//
// Publisher.Run is the one goroutine that sends. Each WebSocket client has two
// more. Client.Run has two for each feed: one that connects, reads and decodes, and
// one that pings. All have ended when Run returns.
package feed
