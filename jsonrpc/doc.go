// SPDX-License-Identifier: Apache-2.0

// Package jsonrpc answers JSON-RPC 2.0 over HTTP: framing, batches, limits and
// the transport. It knows no Ethereum; what a method means is its Handler's
// business.
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
// The package starts one goroutine per connection, all of which have ended
// when Server.Serve returns. It does not log.
package jsonrpc
