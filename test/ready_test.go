// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A readiness is the answer of /readyz.
type readiness struct {
	status  int
	reasons []string
}

func (s *server) readiness(t *testing.T, query string) readiness {
	t.Helper()
	r, err := s.askReadiness(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (s *server) askReadiness(ctx context.Context, query string) (r readiness, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.ops+"/readyz"+query, nil)
	if err != nil {
		return r, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	var body struct {
		Reasons []struct{ Reason string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		return r, err
	}
	r.status = resp.StatusCode
	for _, why := range body.Reasons {
		r.reasons = append(r.reasons, why.Reason)
	}
	return r, nil
}

// unready waits until the node is unready for a reason.
func (s *server) unready(t *testing.T, query, reason string) {
	t.Helper()
	eventually(t, "to be unready: "+reason, func() bool {
		r := s.readiness(t, query)
		return r.status == http.StatusServiceUnavailable && slices.Contains(r.reasons, reason)
	})
}

func (s *server) ready(t *testing.T, query string) {
	t.Helper()
	eventually(t, "to be ready"+query, func() bool {
		r := s.readiness(t, query)
		return r.status == http.StatusOK && len(r.reasons) == 0
	})
}

func TestReadiness(t *testing.T) {
	s := startDev(t, "--dev.block-time", "300ms", "--dev.flashblock-time", "30ms", "--ops.max-block-age", "1500ms", "--pending.max-age", "500ms")
	s.ready(t, "")
	s.ready(t, "?tag=pending&max_age=1s")
	s.ready(t, "?tag=latest&max_age=10s")

	t.Run("a silent feed", func(t *testing.T) {
		call(t, s.url(), "dev_stallFeed")
		s.unready(t, "", "feed-silent")
		s.unready(t, "?tag=pending&max_age=10s", "no-pending")
		call(t, s.url(), "dev_resumeFeed")
		s.ready(t, "?tag=pending&max_age=1s")
	})
	t.Run("no blocks for too long", func(t *testing.T) {
		call(t, s.url(), "dev_pauseSealing")
		s.unready(t, "", "no-blocks")
		s.unready(t, "?tag=latest&max_age=1s", "latest-too-old")
		call(t, s.url(), "dev_resumeSealing")
		s.ready(t, "")
	})
	t.Run("a question that cannot be meant", func(t *testing.T) {
		for _, query := range []string{"?tag=newest", "?max_age=1", "?max_age=-1s", "?tags=latest", "?tag=latest&tag=pending"} {
			if r := s.readiness(t, query); r.status != http.StatusBadRequest {
				t.Errorf("/readyz%s answers %d, want 400", query, r.status)
			}
		}
	})
}

// A node that was told to stop says that it is not ready first, goes on answering
// for the drain time, and is gone within the shutdown timeout.
func TestDraining(t *testing.T) {
	s := startDev(t, "--drain-time", "1s", "--shutdown-timeout", "5s")
	s.ready(t, "")
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.killed = true // there is nothing left to stop
	told := time.Now()
	s.unready(t, "", "draining")
	if got := string(call(t, s.url(), "eth_chainId")); got != `"0x7a69"` {
		t.Errorf("while draining, eth_chainId is %s", got)
	}
	<-s.done
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("glimpse ended with %v:\n%s", err, s.log)
	}
	if took := time.Since(told); took < time.Second {
		t.Errorf("it was gone after %v, before the drain time was over", took)
	}
	if _, err := s.askReadiness(t.Context(), ""); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("after its end, /readyz gives %v", err)
	}
}

// The operations port serves what the document says, and profiles only when they
// are asked for.
func TestOperationsPort(t *testing.T) {
	get := func(s *server, path string) (status int, body string) {
		resp, err := http.Get("http://" + s.ops + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	plain, profiled := startDev(t), startDev(t, "--ops.pprof")
	call(t, plain.url(), "eth_getBalance", "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", "pending")
	tests := []struct {
		server *server
		path   string
		status int
		want   string
	}{
		{plain, "/livez", 200, "ok"},
		{plain, "/metrics", 200, `glimpse_rpc_requests_total{code="0",method="eth_getBalance",tag="pending"} 1`},
		{plain, "/metrics", 200, `glimpse_head_block{tag="latest"}`},
		{plain, "/debug/pprof/", 404, ""},
		{profiled, "/debug/pprof/", 200, "goroutine"},
		{plain, "/nowhere", 404, ""},
	}
	for _, tt := range tests {
		if status, body := get(tt.server, tt.path); status != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("%s answers %d, want %d with %q:\n%.2000s", tt.path, status, tt.status, tt.want, body)
		}
	}
}
