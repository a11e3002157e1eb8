// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// A peer is a server that is measured.
type peer struct {
	name   string
	addr   string // host and port
	server *process
	helper *process // runs while the server does; nil for most
	oldest uint64   // the first block that it can be asked about

	// ready is called when the server goes on; nil where it is always ready.
	ready func(context.Context) error

	memory int64 // the most that was resident under load
}

func (p *peer) processes() []*process {
	if p.helper == nil {
		return []*process{p.server}
	}
	return []*process{p.helper, p.server} // it cannot do without the server
}

func (p *peer) pause() error {
	var errs []error
	for _, q := range p.processes() {
		errs = append(errs, q.pause())
	}
	return errors.Join(errs...)
}

func (p *peer) resume(ctx context.Context) error {
	for _, q := range p.processes() {
		if err := q.resume(); err != nil {
			return err
		}
	}
	if p.ready == nil {
		return nil
	}
	return p.ready(ctx)
}

// stop ends the peer, and reports whether cleanly.
func (p *peer) stop() bool {
	clean := true
	for _, q := range p.processes() {
		clean = q.stop() && clean
	}
	return clean
}

// note keeps how much memory the server has, if that is the most so far.
func (p *peer) note() error {
	n, err := resident(p.server.cmd.Process.Pid)
	p.memory = max(p.memory, n)
	return err
}

func (p *peer) cpu() (time.Duration, error) { return cpu(p.server.cmd.Process.Pid) }

// An importResult is how an import went, as it is kept beside the store.
type importResult struct {
	Elapsed time.Duration
	CPU     time.Duration
	Disk    int64 // right after it
}

// once runs an import unless one has filled the store before.
func once(store string, run func() (importResult, error)) (r importResult, err error) {
	note := store + ".json"
	if text, err := os.ReadFile(note); err == nil {
		if err := json.Unmarshal(text, &r); err != nil {
			return r, fmt.Errorf("%s: %w", note, err)
		}
		return r, nil
	}
	// What an interrupted import left is no measure of one.
	if err := os.RemoveAll(store); err != nil {
		return r, err
	}
	if err := os.MkdirAll(store, 0o700); err != nil {
		return r, err
	}
	if r, err = run(); err != nil {
		return r, err
	}
	if r.Disk, err = onDisk(store); err != nil {
		return r, err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return r, fmt.Errorf("note of the import: %w", err)
	}
	return r, os.WriteFile(note, text, 0o600)
}

// toEnd runs a program to its end in a directory and returns what it printed.
func toEnd(ctx context.Context, dir, program string, args ...string) (out []byte, elapsed, cpu time.Duration, err error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopTimeout
	begin := time.Now()
	out, err = cmd.CombinedOutput()
	elapsed = time.Since(begin)
	if ctx.Err() != nil {
		return out, elapsed, 0, context.Cause(ctx)
	}
	if err != nil {
		return out, elapsed, 0, fmt.Errorf("%s: %w:\n%s", program, err, out[max(0, len(out)-tailBytes):])
	}
	return out, elapsed, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}
