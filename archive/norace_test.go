// SPDX-License-Identifier: Apache-2.0

//go:build !race

package archive_test

const underRace = false
