// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

func shell(t *testing.T, script string) command {
	return command{
		name: "server", program: "/bin/sh", args: []string{"-c", script}, logs: t.TempDir(),
		awaited: map[string]*regexp.Regexp{"rpc": regexp.MustCompile(`at (\S+)`)},
	}
}

func TestAServerRunsWaitsAndEnds(t *testing.T) {
	p, err := start(t.Context(), shell(t, "echo begin; echo at 1.2.3.4:5; exec tail -f /dev/null"))
	if err != nil {
		t.Fatal(err)
	}
	if p.said["rpc"] != "1.2.3.4:5" {
		t.Errorf("got address %q", p.said["rpc"])
	}
	pid := p.cmd.Process.Pid
	if _, err := cpu(pid); err != nil {
		t.Error(err)
	}
	if n, err := resident(pid); err != nil || n < 4096 {
		t.Errorf("got %d bytes of memory (%v)", n, err)
	}
	if err := p.pause(); err != nil {
		t.Error(err)
	}
	awaitState(t, pid, 'T')
	if err := p.resume(); err != nil {
		t.Error(err)
	}
	if err := p.pause(); err != nil {
		t.Error(err)
	}
	awaitState(t, pid, 'T')
	// Also one that waits must end, and by itself.
	p.stop()
	if status := p.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGINT {
		t.Errorf("the process ended by %v, want an interrupt", status.Signal())
	}
	if _, err := cpu(pid); err == nil {
		t.Error("the process is still there")
	}
}

// awaitState waits until the kernel says that a process is in a state.
func awaitState(t *testing.T, pid int, want byte) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		if got := text[bytes.LastIndexByte(text, ')')+2]; got == want {
			return
		}
	}
	t.Errorf("the process never was in state %c", want)
}

func TestAServerThatDoesNotListenIsAnError(t *testing.T) {
	t.Run("because it ends", func(t *testing.T) {
		if _, err := start(t.Context(), shell(t, "echo no such chain")); err == nil || !strings.Contains(err.Error(), "no such chain") {
			t.Errorf("got %v, want what it said", err)
		}
	})
	t.Run("because it is not there", func(t *testing.T) {
		c := shell(t, "")
		c.program = filepath.Join(t.TempDir(), "nothing")
		if _, err := start(t.Context(), c); err == nil {
			t.Error("got no error")
		}
	})
	t.Run("because it is interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := start(ctx, shell(t, "exec tail -f /dev/null")); err == nil {
			t.Error("got no error")
		}
	})
}

func TestATailIsTheLastOfIt(t *testing.T) {
	var last tail
	for i := range 10_000 {
		fmt.Fprintln(&last, i)
	}
	if s := last.String(); len(s) != tailBytes || !strings.HasSuffix(s, "\n9998\n9999\n") {
		t.Errorf("got %d bytes that end in %q", len(s), s[max(0, len(s)-20):])
	}
}

func TestProcessorTimeIsReadBehindAnyName(t *testing.T) {
	for name, c := range map[string]struct {
		stat string
		want time.Duration
	}{
		"a plain name":           {"1 (geth) S 1 1 1 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 1 0", 2 * time.Second},
		"a name with its own )":  {"1 (a) b) S 1 1 1 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0", 30 * time.Millisecond},
		"too few fields":         {"1 (geth) S 1 1", -1},
		"a field that is a word": {"1 (geth) S 1 1 1 0 -1 4194560 1 0 0 0 x 50 0 0", -1},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseStat([]byte(c.stat))
			if c.want < 0 {
				if err == nil {
					t.Errorf("got %v, want an error", got)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("got %v (%v), want %v", got, err, c.want)
			}
		})
	}
}

func TestDiskIsWhatFilesHold(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "full"), make([]byte, 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	hole, err := os.Create(filepath.Join(dir, "hole"))
	if err != nil {
		t.Fatal(err)
	}
	defer hole.Close()
	if err := hole.Truncate(1 << 30); err != nil {
		t.Fatal(err)
	}
	if got, err := onDisk(dir); err != nil || got != 100_000 {
		t.Errorf("got %d (%v), want 100000: the file without the hole", got, err)
	}
}

func TestAnImportIsMeasuredOnce(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	runs := 0
	fill := func() (importResult, error) {
		runs++
		return importResult{Elapsed: time.Duration(runs) * time.Second}, os.WriteFile(filepath.Join(store, "data"), make([]byte, 5000), 0o600)
	}
	for range 2 {
		r, err := once(store, fill)
		if err != nil {
			t.Fatal(err)
		}
		if r.Elapsed != time.Second || r.Disk != 5000 || runs != 1 {
			t.Errorf("got %+v after %d imports, want the first", r, runs)
		}
	}
	// Without its note an import was interrupted, and what is there is dropped.
	if err := os.Remove(store + ".json"); err != nil {
		t.Fatal(err)
	}
	if r, err := once(store, fill); err != nil || r.Elapsed != 2*time.Second {
		t.Errorf("got %+v (%v), want a second import", r, err)
	}
}
