// SPDX-License-Identifier: Apache-2.0

// Package embedded runs a NATS server with JetStream inside the process, for
// small set-ups and tests: nothing else has to be installed.
//
// Everything that the server acknowledges is on disk. There is one server and no
// cluster: when the process ends so does the stream, and it is there again, whole,
// when the process starts on the same directory. deploy/nats has servers that
// outlive a machine.
//
// The server has goroutines of its own from Start to Close, which waits for them.
package embedded
