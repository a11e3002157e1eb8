// SPDX-License-Identifier: Apache-2.0

package embedded_test

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"glimpse/replica/embedded"
)

func start(t *testing.T, o embedded.Options) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// What was acknowledged is there when the server starts again on the same
// directory, for clients of this process and of others.
func TestStreamOutlivesTheServer(t *testing.T) {
	dir := t.TempDir()
	before := start(t, embedded.Options{Dir: dir})
	if !before.SyncsAlways() {
		t.Error("got a server that acknowledges what is not on disk")
	}
	conn, err := before.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js := stream(t, conn)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	big := make([]byte, embedded.MaxPayload-1024)
	if _, err := js.Publish(t.Context(), "s", big); err != nil {
		t.Fatalf("publish of %d bytes: %v", len(big), err)
	}
	before.Close()
	before.Close()

	after := start(t, embedded.Options{Dir: dir})
	conn, err = nats.Connect(after.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s, err := stream(t, conn).Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	if got := s.CachedInfo().State.Msgs; got != 1 {
		t.Errorf("messages after the restart: got %d, want 1", got)
	}
}

func stream(t *testing.T, conn *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func TestStartSaysWhyItCannot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	taken := start(t, embedded.Options{Dir: t.TempDir()})
	u, err := url.Parse(taken.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		options embedded.Options
		want    string
	}{
		{"no directory", embedded.Options{}, "no directory"},
		{"a file where its directory should be", embedded.Options{Dir: file}, "not a directory"},
		{"a port that is taken", embedded.Options{Dir: t.TempDir(), Port: number}, "address already in use"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := embedded.Start(tt.options)
			if err == nil {
				s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Start: got %v, want an error with %q", err, tt.want)
			}
		})
	}
}
