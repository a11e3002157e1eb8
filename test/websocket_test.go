// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"testing"

	"github.com/coder/websocket"
)

// A socket is a WebSocket to glimpse.
type socket struct{ conn *websocket.Conn }

// dial opens a socket, which is closed at the end of the test.
func (s *server) dial(t *testing.T) *socket {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), "ws://"+s.ws, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.CloseNow() })
	conn.SetReadLimit(64 << 20)
	return &socket{conn}
}

// ask sends a request and returns the next message, which must be its answer.
func (w *socket) ask(t *testing.T, body []byte) []byte {
	t.Helper()
	return w.askAs(t, websocket.MessageText, body)
}

func (w *socket) askAs(t *testing.T, kind websocket.MessageType, body []byte) []byte {
	t.Helper()
	if err := w.conn.Write(t.Context(), kind, body); err != nil {
		t.Fatal(err)
	}
	return w.next(t)
}

func (w *socket) next(t *testing.T) []byte {
	t.Helper()
	_, data, err := w.conn.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// subscribe opens a subscription and returns its id.
func (w *socket) subscribe(t *testing.T, params ...any) (id string) {
	t.Helper()
	body, err := json.Marshal(rpcCall{"2.0", 1, "eth_subscribe", params})
	if err != nil {
		t.Fatal(err)
	}
	answer := w.ask(t, body)
	var msg struct{ Result string }
	mustDecode(t, answer, &msg)
	if msg.Result == "" {
		t.Fatalf("eth_subscribe%v answers %s", params, answer)
	}
	return msg.Result
}

// notification returns the next message of a subscription.
func (w *socket) notification(t *testing.T, id string, result any) {
	t.Helper()
	data := w.next(t)
	var msg struct {
		Method string
		Params struct {
			Subscription string
			Result       json.RawMessage
		}
	}
	mustDecode(t, data, &msg)
	if msg.Method != "eth_subscription" || msg.Params.Subscription != id {
		t.Fatalf("got %s, want a message of the subscription %s", data, id)
	}
	mustDecode(t, msg.Params.Result, result)
}
