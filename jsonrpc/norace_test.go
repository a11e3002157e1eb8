// SPDX-License-Identifier: Apache-2.0

//go:build !race

package jsonrpc_test

const raceDetector = false
