// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// meta is what a server says of the cluster, as far as it is needed.
type meta struct {
	Cluster struct {
		Leader   string `json:"leader"`
		Size     int    `json:"cluster_size"`
		Replicas []struct {
			Current bool `json:"current"`
			Offline bool `json:"offline"`
		} `json:"replicas"`
	} `json:"meta_cluster"`
}

// Ready returns when the servers that run follow one leader, which knows all of
// them, and have what it has.
func (c *Cluster) Ready(ctx context.Context) error {
	for i := range c.servers {
		if err := c.servers[i].healthy(ctx); err != nil {
			return err
		}
	}
	return until(ctx, func() error {
		for _, s := range c.servers {
			var m meta
			if s.up() != nil || s.get(ctx, "jsz", &m) != nil || m.Cluster.Leader != s.name {
				continue
			}
			return c.complete(m)
		}
		return errors.New("no server leads")
	})
}

// complete expects the leader to have all servers that run.
func (c *Cluster) complete(m meta) error {
	up, current := 0, 1 // the leader itself
	for _, s := range c.servers {
		if s.up() == nil {
			up++
		}
	}
	for _, r := range m.Cluster.Replicas {
		if r.Current && !r.Offline {
			current++
		}
	}
	if current < up {
		return fmt.Errorf("leader %s has %d of %d servers", m.Cluster.Leader, current, up)
	}
	return nil
}

// StreamLeader returns which server leads a stream, as the others see it. There
// is none for a moment after it was killed; StreamLeader waits for the next.
func (c *Cluster) StreamLeader(ctx context.Context, js jetstream.JetStream, stream string) (leader int, err error) {
	err = until(ctx, func() error {
		// A request to a server that died meanwhile is never answered.
		try, cancel := context.WithTimeout(ctx, answerWithin)
		defer cancel()
		s, err := js.Stream(try, stream)
		if err != nil {
			return err
		}
		info := s.CachedInfo().Cluster
		if info == nil {
			return fmt.Errorf("stream %s is in no cluster", stream)
		}
		for i := range c.servers {
			if c.servers[i].name == info.Leader && c.servers[i].up() == nil {
				leader = i
				return nil
			}
		}
		return fmt.Errorf("stream %s is led by %q", stream, info.Leader)
	})
	return leader, err
}

// up returns why a server does not run, nil where it does.
func (s *server) up() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return fmt.Errorf("server %s does not run", s.name)
	}
	return s.running.failed()
}

// healthy returns when a server that runs has all that it should have.
func (s *server) healthy(ctx context.Context) error {
	if s.up() != nil {
		return nil
	}
	return until(ctx, func() error {
		if err := s.up(); err != nil {
			return giveUp{err}
		}
		return s.get(ctx, "healthz", nil)
	})
}

// answerWithin is how long one question may take.
const answerWithin = time.Second

// get asks a server's monitor.
func (s *server) get(ctx context.Context, what string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	url := fmt.Sprintf("http://127.0.0.1:%d/%s", s.ports.monitor, what)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s of server %s: %s %.200s", what, s.name, response.Status, body)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(body, into)
}

// giveUp is an error that asking again cannot mend.
type giveUp struct{ error }

// until asks again and again until there is no error, or ctx ends.
func until(ctx context.Context, ask func() error) error {
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	for {
		err := ask()
		var final giveUp
		if err == nil || errors.As(err, &final) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; the last answer: %w", ctx.Err(), err)
		case <-tick.C:
		}
	}
}
