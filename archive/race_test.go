// SPDX-License-Identifier: Apache-2.0

//go:build race

package archive_test

// Pebble checks itself when it runs under the race detector, and allocates.
const underRace = true
