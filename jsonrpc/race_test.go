// SPDX-License-Identifier: Apache-2.0

//go:build race

package jsonrpc_test

// raceDetector makes sync.Pool drop things at random.
const raceDetector = true
