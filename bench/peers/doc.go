// SPDX-License-Identifier: Apache-2.0

// Command peers measures glimpse beside geth, anvil and the least that a server
// can do: one generated chain for all of them, the same requests to each in turn,
// in several rounds. It prints tables in Markdown, and writes them with plots to
// the documentation. make bench-peers builds what it needs and runs it.
package main
