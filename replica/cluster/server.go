// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	natsserver "github.com/nats-io/nats-server/v2/server"
)

// Build makes a nats-server of the version that this module uses in dir and
// returns its path. It needs the go command, and must be called from within the
// module.
func Build(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "nats-server")
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/nats-io/nats-server/v2")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build nats-server: %w: %s", err, bytes.TrimSpace(out))
	}
	return path, nil
}

// A process is a server of its own.
type process struct {
	command *exec.Cmd
	ended   chan struct{} // closed when it has, and err is set
	err     error
}

func startProcess(binary, config string) (running, error) {
	p := &process{command: exec.Command(binary, "-c", config), ended: make(chan struct{})}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		p.err = p.command.Wait()
	}()
	return p, nil
}

func (p *process) kill() error { return p.signal(os.Kill) }
func (p *process) stop() error { return p.signal(os.Interrupt) }

// signal ends the process. How it ended is of no interest then.
func (p *process) signal(s os.Signal) error {
	err := p.command.Process.Signal(s)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	if err == nil {
		<-p.ended
	}
	return err
}

func (p *process) failed() error {
	select {
	case <-p.ended:
		return fmt.Errorf("nats-server ended: %w", errors.Join(p.err, errors.New(p.command.ProcessState.String())))
	default:
		return nil
	}
}

// An inProcess is a server in this process.
type inProcess struct{ server *natsserver.Server }

func startInProcess(config string) (running, error) {
	o, err := natsserver.ProcessConfigFile(config)
	if err != nil {
		return nil, err
	}
	o.NoSigs, o.NoLog = true, true
	s, err := natsserver.NewServer(o)
	if err != nil {
		return nil, err
	}
	s.Start()
	return inProcess{s}, nil
}

func (p inProcess) kill() error { return p.stop() }

func (p inProcess) stop() error {
	p.server.Shutdown()
	p.server.WaitForShutdown()
	return nil
}

func (p inProcess) failed() error {
	if !p.server.Running() {
		return errors.New("server does not run")
	}
	return nil
}
