// SPDX-License-Identifier: Apache-2.0

// Package workload is the chain that peers are measured with, as files that all
// of them can load, and the requests that they are asked about it.
package workload
