// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"glimpse/node"
)

// grace is for closing the store, beyond the time that a service may take to
// stop.
const grace = 2 * time.Second

// garbageFloor is how much garbage there may be before it is collected, however
// small the heap is. A node's heap is a few megabytes, its caches being elsewhere,
// so that Go would collect several times a second, and take from the milliseconds
// of a flashblock each time. Memory that is allocated and never touched counts as
// heap and is not resident.
const garbageFloor = 64 << 20

// runService runs a service until ctx ends, and has it read its keys again on
// SIGHUP. One that does not stop in time is left behind: what it has committed
// is on disk, and whoever asked it to stop is waiting.
func runService(ctx context.Context, s *node.Service, run func(context.Context) error) error {
	floor := make([]byte, garbageFloor)
	defer runtime.KeepAlive(floor)

	reload := make(chan os.Signal, 1) // one that is waiting is as good as many
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	s.Reload = reload

	ended := make(chan error, 1) // never full: it is sent to once
	go func() { ended <- run(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(s.ShutdownTimeout + grace)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C:
		return fmt.Errorf("not stopped within --shutdown-timeout %v", s.ShutdownTimeout)
	}
}
