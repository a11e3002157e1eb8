// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"syscall"
	"time"

	"glimpse/bench/load"
)

// A process is a server that runs, or waits.
type process struct {
	name  string
	cmd   *exec.Cmd
	said  map[string]string // what the awaited lines say, by name of the line
	ended chan error        // gets what Wait returns, once
	last  tail              // what it printed last
}

// startTimeout is how long a server may take until it listens.
const startTimeout = 2 * time.Minute

// A command is a program to start.
type command struct {
	name    string // of it and of its log
	program string
	args    []string
	workdir string // empty for that of this program
	logs    string // directory for its log
	cores   []int  // processors to keep to; nil for any

	// awaited are lines that it must have printed before it is of use.
	awaited map[string]*regexp.Regexp
}

// start starts a server and waits for the awaited lines, of which the first group
// is kept.
func start(ctx context.Context, c command) (*process, error) {
	log, err := os.Create(filepath.Join(c.logs, c.name+".log"))
	if err != nil {
		return nil, err
	}
	out, in := io.Pipe()
	p := &process{name: c.name, cmd: exec.Command(c.program, c.args...), said: make(map[string]string), ended: make(chan error, 1)}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Dir = in, in, c.workdir
	p.cmd.Env = append(os.Environ(), "GLIMPSE_DRAIN_TIME=0s")
	// An interrupt is for this program, which stops the others in order; should it
	// be killed, they end too.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := startOn(p.cmd, c.cores); err != nil {
		log.Close()
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	go func() {
		p.ended <- p.cmd.Wait()
		in.Close()
	}()
	ready := make(chan bool, 1)
	go func() {
		defer log.Close()
		both := io.MultiWriter(log, &p.last)
		ready <- p.listen(out, both, c.awaited)
		_, _ = io.Copy(both, out) // the file is for the curious
	}()
	select {
	case ok := <-ready:
		if ok {
			return p, nil
		}
		err = fmt.Errorf("%s ended before it listened:\n%s", c.name, &p.last)
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-time.After(startTimeout):
		err = fmt.Errorf("%s does not listen:\n%s", c.name, &p.last)
	}
	p.stop()
	return nil, err
}

// startOn starts a command on processors. A process has those of the thread that
// started it.
func startOn(cmd *exec.Cmd, cores []int) error {
	if cores == nil {
		return cmd.Start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := load.Pin(0, cores); err != nil {
		return err
	}
	err := cmd.Start()
	all := make([]int, runtime.NumCPU())
	for i := range all {
		all[i] = i
	}
	return errors.Join(err, load.Pin(0, all))
}

// listen reads lines until all awaited ones have come.
func (p *process) listen(out io.Reader, log io.Writer, awaited map[string]*regexp.Regexp) bool {
	for lines := bufio.NewReader(out); len(p.said) < len(awaited); {
		line, err := lines.ReadString('\n')
		if err != nil {
			return false
		}
		_, _ = io.WriteString(log, line)
		for name, pattern := range awaited {
			if m := pattern.FindStringSubmatch(line); m != nil {
				p.said[name] = m[1]
			}
		}
	}
	return true
}

// pause lets a server wait, so that it takes nothing from one that is measured.
func (p *process) pause() error  { return p.signal(syscall.SIGSTOP) }
func (p *process) resume() error { return p.signal(syscall.SIGCONT) }

func (p *process) signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("%s: %w\n%s", p.name, err, &p.last)
	}
	return nil
}

// stopTimeout is how long a server may take to end by itself.
const stopTimeout = time.Minute

// stop ends a server, cleanly if it can, and reports whether it could.
func (p *process) stop() bool {
	// It may be waiting, or gone; what Wait says counts.
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	_ = p.cmd.Process.Signal(syscall.SIGINT)
	select {
	case err := <-p.ended:
		return err == nil
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.ended
		return false
	}
}
