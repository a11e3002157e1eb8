// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a real JetStream cluster on loopback, for tests that kill
// and restart its servers.
//
// A server is a process of its own, of a nats-server binary that Build makes, or
// lives in the process of the test, which starts faster. Only a process can be
// killed as a machine that loses power kills it; a server in the process of the
// test is shut down, which lets it finish what it is writing.
//
// Every server keeps its ports, its name and its directory over a restart.
// Goroutines and processes end at Close.
package cluster
