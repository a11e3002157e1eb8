// SPDX-License-Identifier: Apache-2.0

// Package replicatest has a writer of random chains and a store of a replica,
// both in memory, for tests of what is between them.
package replicatest
