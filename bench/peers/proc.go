// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ticksPerSecond is the unit of /proc/PID/stat, the same on all of Linux.
const ticksPerSecond = 100

// cpu returns how much processor time a process took so far.
func cpu(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStat(text)
}

// parseStat reads user and system time, the 14th and 15th fields. The second is
// a name in parentheses, which can hold anything.
func parseStat(text []byte) (time.Duration, error) {
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	const user, system = 14 - 3, 15 - 3
	if len(fields) <= system {
		return 0, fmt.Errorf("stat of %d fields", len(fields))
	}
	ticks := 0
	for _, f := range []string{fields[user], fields[system]} {
		n, err := strconv.Atoi(f)
		if err != nil {
			return 0, fmt.Errorf("stat: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}

// resident returns how many bytes of memory a process has.
func resident(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, fmt.Errorf("statm of %d fields", len(fields))
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("statm: %w", err)
	}
	return pages * int64(os.Getpagesize()), nil
}

// onDisk returns how many bytes the files below a directory hold: neither the
// holes that some have nor the room that is reserved behind the end of others.
func onDisk(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			total += min(stat.Size, stat.Blocks*512)
		}
		return nil
	})
	return total, err
}

const (
	quietShare   = 0.05 // of a processor
	quietTimeout = 2 * time.Minute
)

// settle waits until a server has nothing more to do, such as compactions after
// it was started. One that always has is taken as it is.
func settle(ctx context.Context, p *process) error {
	deadline := time.Now().Add(quietTimeout)
	for time.Now().Before(deadline) {
		before, err := cpu(p.cmd.Process.Pid)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if err := wait(ctx, time.Second); err != nil {
			return err
		}
		after, err := cpu(p.cmd.Process.Pid)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if (after - before).Seconds() < quietShare {
			return nil
		}
	}
	return nil
}

// wait returns after a while, or with an error when ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
