// SPDX-License-Identifier: Apache-2.0

// Package test holds the black-box tests: they build the glimpse binary, run it
// as a user would, and compare what it answers with the official vectors, the
// recorded odd requests and a real geth.
package test
