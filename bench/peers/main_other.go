// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bench-peers: measures with what Linux has: epoll, /proc and processor affinity")
	os.Exit(1)
}
