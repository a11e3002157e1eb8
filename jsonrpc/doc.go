// SPDX-License-Identifier: Apache-2.0

// Package jsonrpc answers JSON-RPC 2.0 over HTTP and WebSocket: framing,
// batches, limits, keys and the transports. It knows no Ethereum; what a method
// means is its Handler's business, and whose a key is its Gate's.
//
// A body is read by one of two parsers. The fast one takes the shape that
// clients send, in one pass and without garbage, and declines everything else;
// the careful one validates the whole body first and is the definition of what
// is accepted. Fuzzing holds the two together.
//
// Everything that answers one body runs in one Session, so that the entries of
// a batch cannot disagree (P1). A call is never answered with nothing: an
// outcome is a result or an error with a code, and only notifications get no
// answer, because they are not executed.
//
// Over WebSocket a Handler that is a Subscriber can push. Nothing is queued
// here: a subscription is asked for its next notification when the one before
// has been written, and a client that does not read is disconnected.
//
// What clients can make a Server hold is bounded: connections, bodies being
// answered, subscriptions, and the bytes of all long bodies and answers
// together. What is over a bound is refused with an error that says so.
//
// The package starts one goroutine per connection, a second one for each
// WebSocket and one more for each subscription, all of which have ended when
// Server.Serve and Server.ServeWebSocket return. It does not log.
package jsonrpc
