// SPDX-License-Identifier: Apache-2.0

package jsonrpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"glimpse/apikey"
	"glimpse/jsonrpc"
)

// pusher is a toy that can push. What it pushes is the name of its parameter.
type pusher struct {
	toy
	feed   chan string // what "fed" yields
	open   atomic.Int64
	size   int           // bytes that each of "flood" adds to a notification
	nexted chan struct{} // receives at each Next, where set
}

func (p *pusher) Subscribe(_ context.Context, params jsonrpc.Values) (jsonrpc.Subscription, *jsonrpc.Error) {
	v, _ := params.Next()
	kind, _ := v.Text()
	switch string(kind) {
	case "fed", "held", "flood", "late", "gone", "panic", "nothing":
		p.open.Add(1)
		return &pushed{pusher: p, kind: string(kind)}, nil
	case "panicking":
		panic("subscribe")
	}
	return nil, jsonrpc.InvalidParams("no such subscription")
}

type pushed struct {
	*pusher
	kind   string
	closed bool
}

func (s *pushed) Next(ctx context.Context, dst []byte) ([]byte, error) {
	if s.nexted != nil {
		s.nexted <- struct{}{}
	}
	switch s.kind {
	case "flood":
		return append(strconv.AppendQuote(dst, strings.Repeat("x", s.size)), ' '), ctx.Err()
	case "held": // does not notice that it is over
		return append(dst, <-s.feed...), nil
	case "late":
		return nil, fmt.Errorf("%w: 9 messages behind", jsonrpc.ErrSlow)
	case "gone":
		return nil, errors.New("the chain moved too far " + strings.Repeat("☃", 100))
	case "panic":
		panic("next")
	case "nothing":
		return dst, nil
	}
	select {
	case v := <-s.feed:
		return append(dst, v...), nil
	case <-ctx.Done():
		return dst, ctx.Err()
	}
}

func (s *pushed) Close() {
	if s.closed {
		panic("closed twice")
	}
	s.closed = true
	s.open.Add(-1)
}

func startWebSocket(t testing.TB, h jsonrpc.Handler, o jsonrpc.Options) *running {
	t.Helper()
	if o.Namespace == "" {
		o.Namespace = "toy"
	}
	s := jsonrpc.NewServer(h, o)
	return run(t, s, s.ServeWebSocket)
}

// A talker speaks WebSocket.
type talker struct {
	testing.TB
	*websocket.Conn
	ctx context.Context
}

func (r *running) connect(t testing.TB, path string, header http.Header) (*talker, *http.Response, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	c, res, err := websocket.Dial(ctx, "ws://"+r.addr+path, &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		return nil, res, err
	}
	t.Cleanup(func() { _ = c.CloseNow() })
	c.SetReadLimit(64 << 20)
	return &talker{t, c, ctx}, res, nil
}

func (r *running) talk(t testing.TB) *talker {
	t.Helper()
	c, _, err := r.connect(t, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *talker) say(text string) {
	c.Helper()
	if err := c.Write(c.ctx, websocket.MessageText, []byte(text)); err != nil {
		c.Fatalf("write: %v", err)
	}
}

func (c *talker) hear() string {
	c.Helper()
	kind, text, err := c.Read(c.ctx)
	if err != nil {
		c.Fatalf("read: %v", err)
	}
	if kind != websocket.MessageText {
		c.Errorf("got a binary message, want text")
	}
	return string(text)
}

// hearEnd reads up to the end and returns the code and the reason of it.
func (c *talker) hearEnd() websocket.CloseError {
	c.Helper()
	for {
		if _, _, err := c.Read(c.ctx); err != nil {
			var end websocket.CloseError
			if !errors.As(err, &end) {
				c.Errorf("got %v, want a close frame", err)
			}
			return end
		}
	}
}

func (c *talker) subscribe(kind string) (id string) {
	c.Helper()
	c.say(call("1", "subscribe", `["`+kind+`"]`))
	var response struct{ Result string }
	text := c.hear()
	if err := json.Unmarshal([]byte(text), &response); err != nil || len(response.Result) != 34 || response.Result[:2] != "0x" {
		c.Fatalf("got %s, want an id", text)
	}
	return response.Result
}

func notification(id, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"toy_subscription","params":{"subscription":"%s","result":%s}}`, id, result)
}

func TestWebSocketAnswersAsHTTPDoes(t *testing.T) {
	o := jsonrpc.Options{MaxBatch: 3, MaxResponse: 10000}
	r := startWebSocket(t, new(toy), o)
	c := r.talk(t)
	for _, body := range bodies(t) {
		want := jsonrpc.Answer(new(toy), o, string(body))
		for _, kind := range []websocket.MessageType{websocket.MessageText, websocket.MessageBinary} {
			if err := c.Write(c.ctx, kind, body); err != nil {
				t.Fatal(err)
			}
			c.say(call(`"fence"`, "one", "[]"))
			if want != "" {
				if got := c.hear(); got != want {
					t.Errorf("%q: got %.300s, want %.300s", body, got, want)
				}
			}
			if got := c.hear(); got != result(`"fence"`, "1") {
				t.Errorf("%q: got %.300s where nothing more was to come", body, got)
			}
		}
	}
}

func TestWebSocketHandshake(t *testing.T) {
	upgrade := "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
	local := "GET / HTTP/1.1\r\nHost: localhost:1\r\n"
	tests := []struct {
		name, request string
		origins       []string
		want          int
	}{
		{"an upgrade", local + upgrade, nil, 101},
		{"by address", "GET / HTTP/1.1\r\nHost: 127.0.0.1:1\r\n" + upgrade, nil, 101},
		{"no upgrade", local, nil, 426},
		{"a call over HTTP", strings.TrimSuffix(request("POST", "/", ""), "\r\n"), nil, 426},
		{"another host", "GET / HTTP/1.1\r\nHost: evil.example\r\n" + upgrade, nil, 403},
		{"another path", "GET /x HTTP/1.1\r\nHost: localhost\r\n" + upgrade, nil, 404},
		{"another version of the protocol", local + strings.Replace(upgrade, "13", "8", 1), nil, 400},
		{"no key of the handshake", local + strings.Replace(upgrade, "Sec-WebSocket-Key", "X", 1), nil, 400},
		{"HTTP/1.0", "GET / HTTP/1.0\r\nHost: localhost\r\n" + upgrade, nil, 426},
		{"HTTP/2", "PRI * HTTP/2.0\r\n", nil, 505},
		{"a folded line", local + "X: y\r\n z\r\n" + upgrade, nil, 400},
		{"not HTTP", "\x16\x03\x01", nil, 400},
		{"not a request", "GET\r\n", nil, 400},
		{"a header that is too long", local + "X: " + strings.Repeat("y", 40000) + "\r\n" + upgrade, nil, 431},

		{"a page of this machine", local + "Origin: http://localhost:3000\r\n" + upgrade, nil, 101},
		{"a page of this machine over TLS", local + "Origin: https://localhost\r\n" + upgrade, nil, 403},
		{"another page", local + "Origin: http://a.example\r\n" + upgrade, nil, 403},
		{"another page that is allowed", local + "Origin: http://A.example\r\n" + upgrade, []string{"http://a.example"}, 101},
		{"another page that is allowed by host", local + "Origin: https://a.example:99\r\n" + upgrade, []string{"a.example"}, 101},
		{"the wrong port", local + "Origin: http://a.example:81\r\n" + upgrade, []string{"http://a.example:80"}, 403},
		{"no page of this machine where others are allowed", local + "Origin: http://localhost\r\n" + upgrade, []string{"a.example"}, 403},
		{"any page", local + "Origin: null\r\n" + upgrade, []string{"*"}, 101},
		{"a page without an origin", local + "Origin: null\r\n" + upgrade, nil, 403},
		{"two origins", local + "Origin: http://localhost\r\nOrigin: http://localhost\r\n" + upgrade, nil, 403},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := startWebSocket(t, new(stamping), jsonrpc.Options{WebSocketOrigins: tt.origins}).dial(t)
			c.send(tt.request + "\r\n")
			got := c.receiveHead()
			if got.status != tt.want {
				t.Fatalf("got %d %s, want %d", got.status, got.body, tt.want)
			}
			checkHeader(t, got, "Toy-Snapshot", "now")
			if tt.want == 101 {
				checkHeader(t, got, "Sec-WebSocket-Extensions", "")
				return
			}
			checkBody(t, "POST", got)
			c.receiveEnd()
		})
	}
}

// receiveHead is receive, but does not wait for the body of a 101.
func (c *client) receiveHead() answer {
	c.Helper()
	head, err := c.r.Peek(12)
	if err != nil {
		c.Fatal(err)
	}
	if strings.HasSuffix(string(head), " 101") {
		res, err := http.ReadResponse(c.r, nil)
		if err != nil {
			c.Fatal(err)
		}
		return answer{status: res.StatusCode, header: res.Header}
	}
	return c.receive("POST")
}

func TestWebSocketKeys(t *testing.T) {
	gate := newRing(t)
	r := startWebSocket(t, new(toy), jsonrpc.Options{Gate: gate, PingInterval: time.Hour})
	bearer := func(key string) http.Header { return http.Header{"Authorization": {"Bearer " + key}} }
	for _, tt := range []struct {
		name, path string
		header     http.Header
		want       int
	}{
		{"in the header", "/", bearer(goodKey), 101},
		{"in the path", "/" + goodKey, nil, 101},
		{"none", "/", nil, 401},
		{"unknown in the header", "/", bearer(wrongKey), 401},
		{"unknown in the path", "/" + wrongKey, nil, 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, res, err := r.connect(t, tt.path, tt.header)
			if res == nil || res.StatusCode != tt.want {
				t.Fatalf("got %v, %v, want %d", res, err, tt.want)
			}
			if tt.want == 401 && res.Header.Get("WWW-Authenticate") != "Bearer" {
				t.Error("got no challenge")
			}
		})
	}

	c, _, err := r.connect(t, "/"+limitedKey, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.say("[" + one + "," + one + "," + one + "]")
	c.hear()
	c.say(call("5", "one", "[]"))
	if got := withoutMessages(t, c.hear()); got != fault("5", -32005) {
		t.Errorf("over the rate: got %s, want -32005", got)
	}

	keys, err := apikey.Parse(strings.NewReader("carol " + wrongKey))
	if err != nil {
		t.Fatal(err)
	}
	gate.Replace(keys)
	c.say(one)
	if got := c.hearEnd(); got.Code != websocket.StatusPolicyViolation || got.Reason != "API key withdrawn" {
		t.Errorf("after the key was withdrawn: got %v", got)
	}
}

func TestWebSocketHeaderOfTheHandshake(t *testing.T) {
	h := &toy{at: make(chan string, 2)}
	r := startWebSocket(t, h, jsonrpc.Options{Headers: []string{"At-Least"}})
	c, _, err := r.connect(t, "/", http.Header{"At-Least": {"12.3"}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c.say(one)
		if got := <-h.at; got != "12.3" {
			t.Errorf("got %q, want 12.3", got)
		}
	}
}

func TestSubscriptions(t *testing.T) {
	h := &pusher{feed: make(chan string)}
	r := startWebSocket(t, h, jsonrpc.Options{MaxSubscriptions: 2})
	c := r.talk(t)
	id := c.subscribe("fed")
	for _, value := range []string{"1", `{"a":[]}`} {
		h.feed <- value
		if got, want := c.hear(), notification(id, value); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	other := c.subscribe("fed")
	if other == id {
		t.Error("got the same id twice")
	}
	if got := r.server.Stats().Subscriptions; got != 2 {
		t.Errorf("got %d subscriptions counted, want 2", got)
	}
	c.say(call("3", "subscribe", `["fed"]`))
	if got := withoutMessages(t, c.hear()); got != fault("3", -32000) {
		t.Errorf("one too many: got %s, want an error", got)
	}
	c.say(call("4", "unsubscribe", `["`+other+`"]`))
	if got := c.hear(); got != result("4", "true") {
		t.Errorf("got %s, want true", got)
	}
	c.say(call("5", "unsubscribe", `["`+other+`"]`))
	if got := c.hear(); got != `{"jsonrpc":"2.0","id":5,"error":{"code":-32000,"message":"subscription not found"}}` {
		t.Errorf("got %s, want that there is none", got)
	}
	h.feed <- "7"
	if got, want := c.hear(), notification(id, "7"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	another := r.talk(t)
	another.say(call("6", "unsubscribe", `["`+id+`"]`))
	if got := withoutMessages(t, another.hear()); got != fault("6", -32000) {
		t.Errorf("the id of another connection: got %s, want an error", got)
	}
	c.Close(websocket.StatusNormalClosure, "")
	another.Close(websocket.StatusNormalClosure, "")
	r.stop()
	r.wait(t)
	if got := h.open.Load(); got != 0 || r.server.Stats().Subscriptions != 0 {
		t.Errorf("got %d subscriptions at the end, want 0", got)
	}
}

func TestSubscribeParameters(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"what does not exist", call("1", "subscribe", `["x"]`), fault("1", -32602)},
		{"params as an object", call("1", "subscribe", `{}`), fault("1", -32602)},
		{"a panic of the handler", call("1", "subscribe", `["panicking"]`), fault("1", -32603)},
		{"no id", call("1", "unsubscribe", `[]`), fault("1", -32602)},
		{"an id that is no string", call("1", "unsubscribe", `[7]`), fault("1", -32602)},
		{"two ids", call("1", "unsubscribe", `["a","b"]`), fault("1", -32602)},
	}
	h := new(pusher)
	r := startWebSocket(t, h, jsonrpc.Options{})
	c := r.talk(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c.say(tt.body)
			if got := withoutMessages(t, c.hear()); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	if got := r.server.Stats().Subscriptions; got != 0 {
		t.Errorf("got %d subscriptions counted, want 0", got)
	}
}

func TestNoSubscriptionsOverHTTP(t *testing.T) {
	c := start(t, new(pusher), jsonrpc.Options{Namespace: "toy"}).dial(t)
	for _, method := range []string{"subscribe", "unsubscribe"} {
		c.send(post(call("1", method, `["fed"]`)))
		if got, want := c.receive("POST").body, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"notifications not supported"}}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A notification that came before the id would belong to nothing that the
// client knows of. The answer is longer than a client that does not read yet
// can be sent, so that whatever wants to come first has the time to.
func TestTheAnswerComesBeforeTheFirstNotification(t *testing.T) {
	h := &pusher{nexted: make(chan struct{}, 1000), toy: toy{began: make(chan struct{}, 1)}}
	r := startWebSocket(t, h, jsonrpc.Options{})
	c := r.talk(t)
	c.say("[" + call("1", "subscribe", `["flood"]`) + "," + call("2", "kilobytes", "[24000]") + "]")
	<-h.began
	for r.server.Stats().InFlight > 0 {
		runtime.Gosched()
	}
	select {
	case <-h.nexted:
		t.Error("the subscription began before its answer was written")
	case <-time.After(50 * time.Millisecond):
	}
	var responses []struct{ Result string }
	if err := json.Unmarshal([]byte(c.hear()), &responses); err != nil || len(responses) != 2 {
		t.Fatalf("got %d responses, %v, want the answer to a batch first", len(responses), err)
	}
	if got, want := c.hear(), notification(responses[0].Result, `"" `); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	go func() {
		for range h.nexted { // ends with the test's last Next
		}
	}()
	t.Cleanup(func() {
		_ = c.CloseNow() // it would not answer a goodbye
		r.stop()
		<-r.ended
		close(h.nexted)
	})
}

// A subscription that yields once more when it is over must not reach a client
// that was told so.
func TestNothingComesAfterUnsubscribe(t *testing.T) {
	h := &pusher{feed: make(chan string), nexted: make(chan struct{}, 10)}
	c := startWebSocket(t, h, jsonrpc.Options{}).talk(t)
	id := c.subscribe("held")
	<-h.nexted
	c.say(call("2", "unsubscribe", `["`+id+`"]`))
	var feeding sync.WaitGroup
	feeding.Go(func() {
		<-time.After(50 * time.Millisecond) // for a hasty answer to come first
		for range 2 {
			select {
			case h.feed <- "1":
			case <-time.After(50 * time.Millisecond): // nobody asks any more
			}
		}
	})
	for c.hear() != result("2", "true") {
	}
	feeding.Wait()
	c.say(one)
	if got := c.hear(); got != result("1", "1") {
		t.Errorf("got %s, want the next answer", got)
	}
}

func TestSubscriptionsThatEndTheConnection(t *testing.T) {
	tests := []struct {
		kind string
		code websocket.StatusCode
		want string
	}{
		{"late", websocket.StatusPolicyViolation, "slow consumer: notifications were not read in time: 9 messages behind"},
		{"gone", websocket.StatusInternalError, "the chain moved too far " + strings.Repeat("☃", 33)},
		{"panic", websocket.StatusInternalError, "internal error"},
		{"nothing", websocket.StatusInternalError, "internal error"},
	}
	for _, tt := range tests {
		t.Run(tt.kind, func(t *testing.T) {
			h := new(pusher)
			r := startWebSocket(t, h, jsonrpc.Options{})
			c := r.talk(t)
			c.subscribe(tt.kind)
			if got := c.hearEnd(); got.Code != tt.code || got.Reason != tt.want {
				t.Errorf("got %v, want %v %q", got, tt.code, tt.want)
			}
			r.stop()
			r.wait(t)
			if got := h.open.Load(); got != 0 {
				t.Errorf("got %d subscriptions at the end, want 0", got)
			}
			if got, want := r.server.Stats().SlowConsumers == 1, tt.kind == "late"; got != want {
				t.Errorf("counted as slow: got %v, want %v", got, want)
			}
		})
	}
}

func TestWebSocketMessageSize(t *testing.T) {
	r := startWebSocket(t, new(toy), jsonrpc.Options{MaxBody: 100000})
	c := r.talk(t)
	c.say(padded(100000))
	if got := c.hear(); got != result("1", "1") {
		t.Errorf("exactly the limit: got %s, want a result", got)
	}
	c.say(padded(100001))
	if got := c.hearEnd(); got.Code != websocket.StatusMessageTooBig {
		t.Errorf("one byte more: got %v, want 1009", got)
	}
	far := r.talk(t)
	_ = far.Write(far.ctx, websocket.MessageText, []byte(padded(3<<20))) // may be cut off
	if got := far.hearEnd(); got.Code != websocket.StatusMessageTooBig {
		t.Errorf("far more: got %v, want 1009", got)
	}
}

func TestWebSocketShutdown(t *testing.T) {
	h := &pusher{feed: make(chan string), toy: toy{began: make(chan struct{}, 10), release: make(chan struct{})}}
	r := startWebSocket(t, h, jsonrpc.Options{ShutdownTimeout: time.Hour})
	idle, subscribed, asking := r.talk(t), r.talk(t), r.talk(t)
	subscribed.subscribe("fed")
	<-h.began
	asking.say(call("1", "block", "[]"))
	<-h.began

	r.stop()
	for _, c := range []*talker{idle, subscribed} {
		if got := c.hearEnd(); got.Code != websocket.StatusGoingAway || got.Reason != "going away" {
			t.Errorf("got %v, want 1001 going away", got)
		}
	}
	close(h.release)
	if got := asking.hear(); got != result("1", `"released"`) {
		t.Errorf("got %s, want the answer", got)
	}
	if got := asking.hearEnd(); got.Code != websocket.StatusGoingAway {
		t.Errorf("got %v, want 1001", got)
	}
	if err := r.wait(t); err != nil {
		t.Errorf("ServeWebSocket: got %v, want nil", err)
	}
}

func TestWebSocketShutdownCutsOffWhatTakesTooLong(t *testing.T) {
	h := &toy{began: make(chan struct{}, 10)}
	r := startWebSocket(t, h, jsonrpc.Options{ShutdownTimeout: 10 * time.Millisecond})
	c := r.talk(t)
	c.say(call("1", "block", "[]"))
	<-h.began
	r.stop()
	if err := r.wait(t); !errors.Is(err, jsonrpc.ErrCutOff) || !strings.Contains(err.Error(), " 1 connections") {
		t.Errorf("got %v, want one connection cut off", err)
	}
}

func TestConnectionsAndRequestsInFlightAreSharedByBothTransports(t *testing.T) {
	h := &toy{began: make(chan struct{}, 10), release: make(chan struct{})}
	s := jsonrpc.NewServer(h, jsonrpc.Options{MaxConnections: 2, MaxInFlight: 1})
	overHTTP, overWS := run(t, s, s.Serve), run(t, s, s.ServeWebSocket)
	ws := overWS.talk(t)
	ws.say(call("1", "block", "[]"))
	<-h.began
	c := overHTTP.dial(t)
	c.send(post(one))
	if got := withoutMessages(t, c.receive("POST").body); got != fault("1", -32005) {
		t.Errorf("got %s, want too many in flight", got)
	}
	if got := s.Stats(); got.Connections != 2 || got.WebSocketConnections != 1 || got.InFlight != 1 || got.RefusedInFlight != 1 {
		t.Errorf("got %+v", got)
	}
	// Who is turned away while sending may see a reset in place of the answer.
	if _, res, err := overWS.connect(t, "/", nil); err == nil || res != nil && res.StatusCode != 503 {
		t.Errorf("got %v, want 503", res)
	}
	if got := overHTTP.dial(t).receive("POST"); got.status != 503 {
		t.Errorf("got %v, want 503", got)
	}
	if got := s.Stats().RefusedConnections; got != 2 {
		t.Errorf("%d connections were refused, want 2", got)
	}
	close(h.release)
	ws.hear()
}

// A client that answers no ping is gone, although its connection is there.
func TestDeadPeersAreCutOff(t *testing.T) {
	h := &pusher{feed: make(chan string)}
	r := startWebSocket(t, h, jsonrpc.Options{PingInterval: 20 * time.Millisecond})
	lively := r.talk(t)
	var reading sync.WaitGroup
	reading.Go(func() { lively.hearEnd() }) // reading is what answers pings
	defer reading.Wait()
	dead := r.talk(t)
	dead.subscribe("fed") // and does not read any more
	for r.server.Stats().WebSocketConnections > 1 || h.open.Load() > 0 {
		if dead.ctx.Err() != nil {
			t.Fatal("the dead peer was not cut off")
		}
		<-time.After(time.Millisecond)
	}
	if got := r.server.Stats().WebSocketConnections; got != 1 {
		t.Errorf("got %d connections, want the lively one", got)
	}
	r.stop()
}

// While a call runs nobody reads pongs; that is no sign of death.
func TestALongCallOutlivesPings(t *testing.T) {
	h := &toy{began: make(chan struct{}, 1), release: make(chan struct{})}
	r := startWebSocket(t, h, jsonrpc.Options{PingInterval: 10 * time.Millisecond})
	c := r.talk(t)
	c.say(call("1", "block", "[]"))
	<-h.began
	<-time.After(100 * time.Millisecond)
	close(h.release)
	if got := c.hear(); got != result("1", `"released"`) {
		t.Errorf("got %s, want the answer", got)
	}
}

func TestWebSocketSlowBodies(t *testing.T) {
	r := startWebSocket(t, new(toy), jsonrpc.Options{BodyTimeout: 30 * time.Millisecond})
	c := r.talk(t)
	w, err := c.Writer(c.ctx, websocket.MessageText)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil { // a frame a millisecond, and never the last
		_, err = w.Write(bytes.Repeat([]byte(" "), 5000)) // more than the client buffers
		<-time.After(time.Millisecond)
	}
	if got := c.hearEnd(); got.Code != websocket.StatusPolicyViolation || got.Reason != "message took too long to arrive" {
		t.Errorf("got %v, want 1008", got)
	}
}

// The flood of a subscription stops at a client that does not read, which is
// cut off, with nothing queued for it.
func TestSubscribersThatDoNotReadAreCutOff(t *testing.T) {
	h := &pusher{size: 100_000}
	r := startWebSocket(t, h, jsonrpc.Options{WriteTimeout: 50 * time.Millisecond})
	c := r.talk(t)
	c.subscribe("flood")
	for r.server.Stats().SlowConsumers == 0 || h.open.Load() > 0 {
		if c.ctx.Err() != nil {
			t.Fatal("the client was not cut off")
		}
		<-time.After(time.Millisecond)
	}
}

func TestWebSocketRequestsAreAnsweredInOrder(t *testing.T) {
	c := startWebSocket(t, new(pusher), jsonrpc.Options{}).talk(t)
	c.subscribe("flood")
	var saying sync.WaitGroup
	saying.Go(func() {
		for i := range 200 {
			c.say(call(strconv.Itoa(i), "one", "[]"))
		}
	})
	for i := 0; i < 200; {
		if got := c.hear(); !strings.Contains(got, "toy_subscription") {
			if got != result(strconv.Itoa(i), "1") {
				t.Fatalf("got %s, want answer %d", got, i)
			}
			i++
		}
	}
	saying.Wait()
}
