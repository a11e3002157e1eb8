// SPDX-License-Identifier: Apache-2.0

package jsonrpc_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"glimpse/jsonrpc"
)

const upgradeRequest = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"

// frame is a WebSocket frame as a client sends it, with a mask that changes
// nothing.
func frame(first byte, payload string) []byte {
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	return append(append(b, 0, 0, 0, 0), payload...)
}

const (
	text, binaryData, more  = 0x81, 0x82, 0x80
	textBegins, moreToCome  = 0x01, 0x00
	closing, pinging, pongs = 0x88, 0x89, 0x8a
)

// FuzzFrames sends any bytes after a handshake. Whatever they are, the server
// ends the connection or goes on, and ends when it is told to.
func FuzzFrames(f *testing.F) {
	subscribe := call("1", "subscribe", `["fed"]`)
	var several []byte
	for _, piece := range [][]byte{frame(textBegins, one[:10]), frame(pinging, "x"), frame(moreToCome, ""), frame(more, one[10:]), frame(closing, "\x03\xe8bye")} {
		several = append(several, piece...)
	}
	for _, seed := range [][]byte{
		frame(text, one), frame(binaryData, one), several, frame(text, subscribe),
		append(frame(text, subscribe), frame(text, call("2", "subscribe", `["flood"]`))...),
		frame(text, string(make([]byte, 2000))), frame(pongs, "x"), frame(closing, ""), frame(closing, "\x00\x01"),
		frame(0xc1, one), frame(0x83, one), frame(more, "x"), append(frame(textBegins, "x"), frame(text, "y")...),
		{text, 5, 'h', 'e', 'l', 'l', 'o'}, {text}, {}, {text, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		{pinging, 0xfe, 0x10, 0, 1, 2, 3, 4}, {0x09, 0x81, 0, 0, 0, 0, 1},
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, frames []byte) {
		client, server := net.Pipe()
		defer client.Close()
		l := &pipeListener{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
		l.conns <- server
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		s := jsonrpc.NewServer(&pusher{feed: make(chan string)}, jsonrpc.Options{
			Namespace: "toy", MaxBody: 1000, MaxResponse: 10000,
			BodyTimeout: patience, WriteTimeout: patience, ShutdownTimeout: 50 * time.Millisecond,
		})
		ended := make(chan error, 1)
		go func() { ended <- s.ServeWebSocket(ctx, l) }()

		sent := make(chan struct{})
		go func() {
			defer close(sent)
			// The server may have heard enough at any byte.
			_, _ = client.Write(append([]byte(upgradeRequest), frames...))
			_, _ = client.Write(frame(closing, "\x03\xe8"))
		}()
		r := bufio.NewReader(client)
		if res, err := http.ReadResponse(r, nil); err != nil || res.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("got %v, %v, want a WebSocket", res, err)
		}
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			_, _ = io.Copy(io.Discard, r) // ends with the connection
		}()
		<-sent
		select {
		case <-drained:
		case <-time.After(20 * time.Millisecond): // the server waits for the rest of a frame
		}
		client.Close()
		cancel()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatalf("%q keeps the server from ending", frames)
		}
		<-drained
		if got := s.Stats(); got.Connections != 0 || got.Subscriptions != 0 || got.Held != 0 || got.InFlight != 0 {
			t.Errorf("after %q: %+v is left", frames, got)
		}
	})
}

// leaving ends its caller's context at the third call.
type leaving struct {
	leave context.CancelFunc
	calls int
}

func (l *leaving) Has([]byte) bool                                       { return true }
func (l *leaving) Begin(context.Context, jsonrpc.Header) jsonrpc.Session { return l }
func (l *leaving) End()                                                  {}
func (l *leaving) Call(_ context.Context, dst, _ []byte, _ jsonrpc.Values) ([]byte, *jsonrpc.Error) {
	if l.calls++; l.calls == 3 {
		l.leave()
	}
	return append(dst, "1"...), nil
}

// The rest of a batch is not tried when nobody waits for it any more.
func TestBatchEndsWithItsCaller(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	h := &leaving{leave: leave}
	call := `{"jsonrpc":"2.0","id":1,"method":"any"}`
	answer := jsonrpc.AnswerUntil(ctx, h, jsonrpc.Options{}, "["+strings.Repeat(call+",", 99)+call+"]")
	if h.calls != 3 || strings.Count(answer, `"result":1`) != 3 || strings.Count(answer, `"error"`) != 97 {
		t.Errorf("%d calls were made: %.300s", h.calls, answer)
	}
}
