// SPDX-License-Identifier: Apache-2.0

// Package node builds the parts of glimpse, joins their interfaces, and runs and
// stops them. Each thing that the command line can ask for is one function here:
// Import, Serve, Verify.
//
// It starts the goroutines of the parts it runs, and has joined all of them when
// a function returns.
package node
