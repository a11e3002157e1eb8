// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"glimpse/chain"
	"glimpse/follow/upstream"
	"glimpse/internal/chaingen"
)

// small returns a short chain, the same one to all tests: nobody changes it.
func small(t testing.TB) *world {
	t.Helper()
	smallOnce.Do(func() { smallWorld = newWorld(t, 1, 12, chaingen.Options{Forks: chaingen.Newest}) })
	return smallWorld
}

var (
	smallOnce  sync.Once
	smallWorld *world
)

func TestOddAnswersAreErrors(t *testing.T) {
	tests := []struct {
		name string
		text string // %s is the id
		code int    // of the error, where the upstream gives one
	}{
		{"nothing", "%.0s", 0},
		{"null result", `{"jsonrpc":"2.0","id":%s,"result":null}`, 0},
		{"no result", `{"jsonrpc":"2.0","id":%s}`, 0},
		{"another id", `{"jsonrpc":"2.0","id":1%s,"result":"0x1"}`, 0},
		{"id as a string", `{"jsonrpc":"2.0","id":"%s","result":"0x1"}`, 0},
		{"no id", `{"jsonrpc":"2.0","result":"0x1"%.0s}`, 0},
		{"a batch", `[{"jsonrpc":"2.0","id":%s,"result":"0x1"},{"jsonrpc":"2.0","id":9999,"result":"0x1"}]`, 0},
		{"text", `<html>busy</html>%.0s`, 0},
		{"cut", `{"jsonrpc":"2.0","id":%s,"result":"0x`, 0},
		{"an error", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no"}}`, -32602},
		{"an error beside a result", `{"jsonrpc":"2.0","id":%s,"result":"0x1","error":{"code":7,"message":"no"}}`, 7},
		{"an error without an id", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}%.0s}`, -32600},
		{"an error that is text", `{"jsonrpc":"2.0","id":%s,"error":"no"}`, -32603},
	}
	w := small(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(w)
			p := open(t, n)
			n.set("test_odd", func([]json.RawMessage) (any, error) { return rawAnswer(tt.text), nil })
			result, err := p.Call(t.Context(), "test_odd")
			var call *upstream.CallError
			if !errors.As(err, &call) || call.Method != "test_odd" || call.Upstream != "http://node" {
				t.Fatalf("Call = %s, %v, want a CallError with method and upstream", result, err)
			}
			var rpc *upstream.RPCError
			if errors.As(err, &rpc) != (tt.code != 0) || tt.code != 0 && rpc.Code != tt.code {
				t.Errorf("got error %v, want code %d", err, tt.code)
			}
		})
	}
}

// A null error beside a result is what some nodes write for none.
func TestNullErrorIsNone(t *testing.T) {
	n := newNode(small(t))
	p := open(t, n)
	n.set("test_odd", func([]json.RawMessage) (any, error) {
		return rawAnswer(`{"jsonrpc":"2.0","id":%s,"result":"0x1","error":null}`), nil
	})
	if result, err := p.Call(t.Context(), "test_odd"); err != nil || string(result) != `"0x1"` {
		t.Errorf("Call = %s, %v, want 0x1", result, err)
	}
}

func TestAnswerThatIsTooLarge(t *testing.T) {
	n := newNode(small(t))
	p := openAll(t, upstream.Options{URLs: []string{"http://node"}, RoundTripper: hosts{"node": n}, MaxAnswer: 1 << 16, Rounds: 1})
	size := 1 << 15
	n.set("test_large", func([]json.RawMessage) (any, error) { return strings.Repeat("x", size), nil })
	if _, err := p.Call(t.Context(), "test_large"); err != nil {
		t.Fatal(err)
	}
	size = 1 << 16
	if _, err := p.Call(t.Context(), "test_large"); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("got %v, want that the answer is too large", err)
	}
}

func TestErrorsDoNotTellCredentials(t *testing.T) {
	for _, url := range []string{
		"http://user:secret@down/secret?key=secret",
		"ws://user:secret@down/secret?key=secret",
		"http://secret%zz",
	} {
		_, err := upstream.Open(t.Context(), upstream.Options{URLs: []string{url}, RoundTripper: hosts{}})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("Open(%s) = %v, want an error without the secret", url, err)
		}
	}
	n := newNode(small(t))
	p := openAll(t, upstream.Options{URLs: []string{"http://user:secret@node/secret"}, RoundTripper: hosts{"node": n}, Rounds: 1})
	n.intercept = func(w http.ResponseWriter, _ []byte) bool { w.WriteHeader(500); return true }
	_, err := p.Call(t.Context(), "eth_chainId")
	if err == nil || strings.Contains(err.Error()+fmt.Sprint(p.Status()), "secret") {
		t.Errorf("got %v and %+v, want an error without the secret", err, p.Status())
	}
}

// Whatever way a node has to refuse a batch, all questions are answered.
func TestBatchesAreSplit(t *testing.T) {
	w := small(t)
	const most = 7
	tests := []struct {
		name    string
		prepare func(*fakeNode)
	}{
		{"an error for the whole batch", func(n *fakeNode) {
			n.tooLarge = func(int) string {
				return `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batch too large"}}`
			}
		}},
		{"an error in a batch of one", func(n *fakeNode) {
			n.tooLarge = func(int) string {
				return `[{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"batch too large"}}]`
			}
		}},
		{"a status", func(n *fakeNode) {
			n.intercept = func(w http.ResponseWriter, body []byte) bool {
				var batch []json.RawMessage
				if json.Unmarshal(body, &batch) == nil && len(batch) > most {
					w.WriteHeader(http.StatusRequestEntityTooLarge)
					return true
				}
				return false
			}
		}},
		{"no batches at all", func(n *fakeNode) {
			n.maxBatch = 0
			n.tooLarge = func(int) string { return `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}` }
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(w)
			n.maxBatch = most
			tt.prepare(n)
			p := open(t, n)
			q, want := allChanges(w, 5)
			state, err := p.State(t.Context(), w.ref(5), q)
			if err != nil {
				t.Fatal(err)
			}
			if len(q.Slots) < most {
				t.Fatalf("%d slots are too few to split", len(q.Slots))
			}
			for i := range want {
				if state.Slots[i] != want[i] {
					t.Errorf("slot %v = %s, want %s", q.Slots[i], state.Slots[i], want[i])
				}
			}
		})
	}
}

// geth answers the rest of a batch with an error when the answers before it
// are large already.
func TestRestOfALargeBatchIsAskedAgain(t *testing.T) {
	w := small(t)
	n := newNode(w)
	p := open(t, n)
	honest, count := n.methods["eth_getStorageAt"], 0
	n.set("eth_getStorageAt", func(p []json.RawMessage) (any, error) {
		if count++; count%3 == 0 {
			return nil, &upstream.RPCError{Code: -32003, Message: "response too large"}
		}
		return honest(p)
	})
	q, want := allChanges(w, 5)
	state, err := p.State(t.Context(), w.ref(5), q)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if state.Slots[i] != want[i] {
			t.Errorf("slot %v = %s, want %s", q.Slots[i], state.Slots[i], want[i])
		}
	}
}

// allChanges asks for all that changed up to block n, with what is there then.
func allChanges(w *world, n int) (q upstream.Query, want []chain.Value) {
	for _, result := range w.results[1 : n+1] {
		for _, a := range result.Diff.Accounts {
			q.Accounts = append(q.Accounts, a.Address)
			for _, s := range a.Slots {
				q.Slots = append(q.Slots, upstream.SlotKey{Address: a.Address, Slot: s.Slot})
				value, _ := w.states[n].Slot(a.Address, s.Slot) // never fails
				want = append(want, value)
			}
		}
	}
	return q, want
}
