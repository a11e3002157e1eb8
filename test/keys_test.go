// SPDX-License-Identifier: Apache-2.0

package test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coder/websocket"
)

const (
	firstKey  = "aaaaaaaaaaaaaaaaaaaaaaaa"
	secondKey = "bbbbbbbbbbbbbbbbbbbbbbbb"
)

// With a file of keys nobody is answered without one, and SIGHUP reads it again.
func TestAPIKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first " + firstKey + "\n")
	s := startDev(t, "--rpc.keys", file)
	ask := func(path, bearer string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url()+path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if bearer != "" {
			req.Header.Set("Authorization", "Bearer "+bearer)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	dial := func(path string) error {
		conn, _, err := websocket.Dial(t.Context(), "ws://"+s.ws+path, nil)
		if err == nil {
			err = conn.CloseNow()
		}
		return err
	}
	for _, tt := range []struct {
		name, path, bearer string
		want               int
	}{
		{"no key", "", "", 401},
		{"a wrong key", "", secondKey, 401},
		{"a key in the header", "", firstKey, 200},
		{"a key as the path", firstKey, "", 200},
		{"a wrong key as the path", secondKey, "", 401},
	} {
		if got := ask(tt.path, tt.bearer); got != tt.want {
			t.Errorf("%s gets %d, want %d", tt.name, got, tt.want)
		}
	}
	if dial("/") == nil || dial("/"+firstKey) != nil {
		t.Errorf("WebSocket: without a key %v, with it %v", dial("/"), dial("/"+firstKey))
	}

	write("second " + secondKey + " 1\n")
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first key to be refused", func() bool { return ask("", firstKey) == 401 })
	limited := false
	for range 5 {
		limited = limited || ask("", secondKey) == 429
	}
	if !limited {
		t.Error("five requests in a moment are not over a rate of one a second")
	}

	write("this is no file of keys\n")
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the second key still to be known", func() bool { return ask("", secondKey) == 200 })
}

// What makes the embedded chain do things exists in dev alone.
func TestServeHasNoDevMethods(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	startDev(t, "--datadir", dir).stopNow(t)
	s := serve(t, "serve", "--datadir", dir, "--http.port", "0")
	for _, method := range []string{"dev_reorg", "evm_mine", "dev_stallFeed", "eth_sendTransaction", "eth_accounts", "eth_sendRawTransaction"} {
		if got := errorCode(t, s.url(), method); got.Code != -32601 {
			t.Errorf("%s gives code %d, want -32601", method, got.Code)
		}
	}
	s.ready(t, "")
	s.unready(t, "?tag=pending", "no-pending")
}
