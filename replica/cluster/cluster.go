// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Options say how a cluster is started.
type Options struct {
	// Dir holds what the servers store, their configurations and what they log.
	Dir string

	// Servers is how many there are. Zero means three.
	Servers int

	// Binary is a nats-server, as Build makes it. Empty means servers in this
	// process.
	Binary string
}

// A Cluster is some servers. Its methods may be called concurrently, but not for
// the same server.
type Cluster struct{ servers []*server }

// A server is one of a cluster, running or not.
type server struct {
	name   string
	config string // path of its configuration
	binary string
	ports  ports

	mu      sync.Mutex
	running running // nil while it is not; guarded by mu
}

// running is a server that was started.
type running interface {
	// kill ends it as abruptly as it can be and returns when it is gone.
	kill() error

	// stop ends it in order and returns when it is gone.
	stop() error

	// failed returns why it ended by itself, nil while it runs.
	failed() error
}

type ports struct{ client, cluster, monitor int }

// Start starts a cluster and returns when all its servers follow one leader.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if o.Servers == 0 {
		o.Servers = 3
	}
	c, err := configure(o)
	if err != nil {
		return nil, fmt.Errorf("configure cluster: %w", err)
	}
	for i := range c.servers {
		err = errors.Join(err, c.servers[i].start())
	}
	if err == nil {
		err = c.Ready(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start cluster: %w", err), c.Close())
	}
	return c, nil
}

func configure(o Options) (*Cluster, error) {
	all, err := freePorts(o.Servers)
	if err != nil {
		return nil, err
	}
	var routes []string
	for _, p := range all {
		routes = append(routes, fmt.Sprintf("nats-route://127.0.0.1:%d", p.cluster))
	}
	c := new(Cluster)
	for i, p := range all {
		s := &server{name: fmt.Sprintf("n%d", i), binary: o.Binary, ports: p}
		s.config = filepath.Join(o.Dir, s.name+".conf")
		if err := os.MkdirAll(filepath.Join(o.Dir, s.name), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(s.config, []byte(s.configuration(o.Dir, routes)), 0o600); err != nil {
			return nil, err
		}
		c.servers = append(c.servers, s)
	}
	return c, nil
}

// configuration is that of one server. Servers do not tell clients of each other,
// because a test may have put something between.
func (s *server) configuration(dir string, routes []string) string {
	return fmt.Sprintf(`server_name: %s
listen: "127.0.0.1:%d"
http: "127.0.0.1:%d"
log_file: %q
max_payload: 8MB
jetstream { store_dir: %q, sync_interval: always }
cluster { name: glimpse, listen: "127.0.0.1:%d", routes: [%s], no_advertise: true }
`, s.name, s.ports.client, s.ports.monitor, filepath.Join(dir, s.name+".log"), filepath.Join(dir, s.name),
		s.ports.cluster, strings.Join(routes, ", "))
}

// freePorts finds ports by taking them for a moment. All are taken together, so
// that none is found twice.
func freePorts(servers int) (all []ports, err error) {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			err = errors.Join(err, l.Close())
		}
	}()
	take := func() int {
		l, listenErr := net.Listen("tcp", "127.0.0.1:0")
		if listenErr != nil {
			err = errors.Join(err, listenErr)
			return 0
		}
		held = append(held, l)
		return l.Addr().(*net.TCPAddr).Port
	}
	for range servers {
		all = append(all, ports{take(), take(), take()})
	}
	return all, err
}

func (s *server) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		return fmt.Errorf("server %s runs already", s.name)
	}
	var err error
	if s.binary == "" {
		s.running, err = startInProcess(s.config)
	} else {
		s.running, err = startProcess(s.binary, s.config)
	}
	if err != nil {
		return fmt.Errorf("start server %s: %w", s.name, err)
	}
	return nil
}

// end ends a server that runs, in one way or the other.
func (s *server) end(how func(running) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return nil
	}
	r := s.running
	s.running = nil
	if err := how(r); err != nil {
		return fmt.Errorf("end server %s: %w", s.name, err)
	}
	return nil
}

func (s *server) url() string { return fmt.Sprintf("nats://127.0.0.1:%d", s.ports.client) }

// URL returns where clients connect: all servers, separated by commas.
func (c *Cluster) URL() string {
	var urls []string
	for i := range c.servers {
		urls = append(urls, c.servers[i].url())
	}
	return strings.Join(urls, ",")
}

// ServerURL returns where one server is.
func (c *Cluster) ServerURL(i int) string { return c.servers[i].url() }

// Len returns how many servers there are, running or not.
func (c *Cluster) Len() int { return len(c.servers) }

// Kill ends a server abruptly and returns when it is gone. To kill one that does
// not run does nothing.
func (c *Cluster) Kill(i int) error { return c.servers[i].end(running.kill) }

// Stop ends a server in order. To stop one that does not run does nothing.
func (c *Cluster) Stop(i int) error { return c.servers[i].end(running.stop) }

// Restart starts a server again that was killed or stopped, and returns when it
// has all that the others have.
func (c *Cluster) Restart(ctx context.Context, i int) error {
	if err := c.servers[i].start(); err != nil {
		return err
	}
	return c.servers[i].healthy(ctx)
}

// Close stops all servers that run.
func (c *Cluster) Close() error {
	var err error
	for i := range c.servers {
		err = errors.Join(err, c.Stop(i))
	}
	return err
}

// askAgain is how long to wait before a server is asked the same again.
const askAgain = 20 * time.Millisecond
