// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// program is the glimpse under test, built once for all tests.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "glimpse-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = filepath.Join(dir, "glimpse")
	build := exec.Command("go", "build", "-o", program, "glimpse/cmd/glimpse")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	code := 1
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build glimpse:", err)
	} else {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// number reads a number from the environment, where the targets of the Makefile
// ask for more than a quick test does.
func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// run runs glimpse to its end and returns what it printed and its exit code.
func run(t *testing.T, args ...string) (output string, code int) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = &out, &out, environment()
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// mustRun is run for what has to succeed.
func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	out, code := run(t, args...)
	if code != 0 {
		t.Fatalf("glimpse %s: exit code %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// A server is a running glimpse.
type server struct {
	addr string // host:port of its JSON-RPC
	ws   string // host:port of the same over WebSocket
	ops  string // host:port of its operations
	nats string // URL of its NATS server; empty where it has none
	cmd  *exec.Cmd
	log  *bytes.Buffer
	out  *lockedBuffer // what it prints to its standard output
	done chan struct{} // closed once log has all of its output

	observable chan struct{} // closed once ops is known
	listens    chan struct{} // closed once addr is known

	killed bool // so there is nothing to stop any more
}

// listening is what the log says, of JSON-RPC over HTTP last.
var listening = regexp.MustCompile(`msg="(json-rpc|websocket|operations|nats) listening" (?:addr|url)=(\S+)`)

// environment is that of every glimpse under test: ports that nobody else has,
// and no time lost at its end.
func environment() []string {
	return append(os.Environ(), "GLIMPSE_WS_PORT=0", "GLIMPSE_OPS_PORT=0", "GLIMPSE_DRAIN_TIME=0s")
}

// serve starts glimpse and waits until it says where it listens. It is stopped
// with SIGTERM at the end of the test, and must then exit cleanly.
func serve(t *testing.T, args ...string) *server {
	t.Helper()
	s := launch(t, args...)
	s.await(t, s.listens)
	return s
}

// await waits until s says where it listens.
func (s *server) await(t *testing.T, said <-chan struct{}) {
	t.Helper()
	select {
	case <-said:
	case <-s.done:
		t.Fatalf("glimpse %s ended before it listened:\n%s", strings.Join(s.cmd.Args[1:], " "), s.log)
	case <-time.After(30 * time.Second):
		t.Fatalf("glimpse %s does not listen after 30 s", strings.Join(s.cmd.Args[1:], " "))
	}
}

// launch is serve for one that is not waited for.
func launch(t *testing.T, args ...string) *server {
	t.Helper()
	s := &server{
		cmd: exec.Command(program, args...), log: new(bytes.Buffer), out: new(lockedBuffer), done: make(chan struct{}),
		observable: make(chan struct{}), listens: make(chan struct{}),
	}
	s.cmd.Stdout, s.cmd.Env = s.out, environment()
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.done)
		lines := bufio.NewScanner(io.TeeReader(stderr, s.log))
		for lines.Scan() {
			m := listening.FindStringSubmatch(lines.Text())
			switch {
			case m == nil:
			case m[1] == "websocket":
				s.ws = m[2]
			case m[1] == "operations":
				s.ops = m[2]
				close(s.observable)
			case m[1] == "nats":
				s.nats = m[2]
			default:
				s.addr = m[2]
				close(s.listens)
			}
		}
	}()
	t.Cleanup(func() { s.stop(t) })
	return s
}

func (s *server) stop(t *testing.T) {
	t.Helper()
	if s.killed {
		return
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("stop glimpse: %v", err)
	}
	<-s.done
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("glimpse ended with %v:\n%s", err, s.log)
	}
}

// stopNow is stop before the end of the test.
func (s *server) stopNow(t *testing.T) {
	t.Helper()
	s.stop(t)
	s.killed = true
}

func (s *server) url() string { return "http://" + s.addr + "/" }

// post sends body as a JSON-RPC request and returns the response body.
func post(ctx context.Context, url string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// call makes one call that must succeed and returns its result.
func call(t testing.TB, url, method string, params ...any) json.RawMessage {
	t.Helper()
	if params == nil {
		params = []any{}
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := post(t.Context(), url, body)
	if err != nil {
		t.Fatal(err)
	}
	var msg struct {
		Result json.RawMessage
		Error  json.RawMessage
	}
	if err := json.Unmarshal(answer, &msg); err != nil || msg.Error != nil {
		t.Fatalf("%s%v answers %s (%v)", method, params, answer, err)
	}
	return msg.Result
}

// A lockedBuffer can be read while it is written.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
