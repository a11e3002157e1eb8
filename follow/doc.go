// SPDX-License-Identifier: Apache-2.0

// Package follow keeps a store in step with a chain that another node has.
//
// An upstream says which block is the newest. The Follower finds the newest block
// that both have, takes back what is above it, and adds the blocks of the other
// branch; what they changed comes from an Engine: executing them here, what the
// feed of pre-confirmations made of them already, the upstream's tracer, or access
// lists. Only when the store stands at the new head is it announced, so that a
// reorganisation is one step for readers (P6).
//
// State that the store does not have is read through from the upstream, see
// package origin. A block that cannot be had, or whose result does not match its
// header, is not announced; the node then answers from the one before, and says so
// in its readiness.
package follow
