// SPDX-License-Identifier: Apache-2.0

package jsonrpc_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"glimpse/apikey"
	"glimpse/jsonrpc"
)

const (
	goodKey    = "good-key_0123456789"
	limitedKey = "limited-key_0123456789"
	wrongKey   = "wrong-key_0123456789"
)

// ring is a Gate of real keys: one without a limit, and one of 3 calls a
// second.
type ring struct{ *apikey.Ring }

func (r ring) Admit(key []byte) (jsonrpc.Ticket, bool) {
	t, ok := r.Ring.Admit(key)
	return t, ok
}

func newRing(t testing.TB) ring {
	t.Helper()
	keys, err := apikey.Parse(strings.NewReader("alice " + goodKey + "\nbob " + limitedKey + " 3"))
	if err != nil {
		t.Fatal(err)
	}
	return ring{apikey.NewRing(keys)}
}

func request(verb, path, body string, lines ...string) string {
	head := verb + " " + path + " HTTP/1.1\r\nHost: localhost\r\n"
	if body != "" {
		head += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	for _, line := range lines {
		head += line + "\r\n"
	}
	return head + "\r\n" + body
}

func TestKeys(t *testing.T) {
	bearer := "Authorization: Bearer "
	tests := []struct {
		name, request string
		want          int
		message       string // of the error, empty for none
	}{
		{"in the header", request("POST", "/", one, bearer+goodKey), 200, ""},
		{"in the header, the scheme in any case", request("POST", "/", one, "authorization: bearer  "+goodKey+" "), 200, ""},
		{"in the path", request("POST", "/"+goodKey, one), 200, ""},
		{"in the path with a query", request("POST", "/"+goodKey+"?x=1", one), 200, ""},
		{"the header counts where there are both", request("POST", "/"+wrongKey, one, bearer+goodKey), 200, ""},
		{"none", request("POST", "/", one), 401, "API key required"},
		{"an empty one", request("POST", "/", one, bearer), 401, "API key required"},
		{"another scheme", request("POST", "/"+goodKey, one, "Authorization: Basic "+goodKey), 401, "API key required"},
		{"two headers", request("POST", "/", one, bearer+goodKey, bearer+goodKey), 401, "API key required"},
		{"unknown in the header", request("POST", "/", one, bearer+wrongKey), 401, "unknown API key"},
		{"unknown in the path", request("POST", "/"+wrongKey, one), 401, "unknown API key"},
		{"a key and a slash", request("POST", "/"+goodKey+"/", one), 404, "not found: requests go to /"},
		{"a key in escapes", request("POST", "/%67ood-key_0123456789", one), 401, "unknown API key"},
		{"a health check needs none", request("GET", "/", ""), 200, ""},
		{"a preflight needs none", request("OPTIONS", "/"+wrongKey, "", "Origin: https://a.example", "Access-Control-Request-Method: POST"), 204, ""},
		{"a key does not open other verbs", request("PUT", "/"+goodKey, one), 405, "method not allowed: use POST"},
	}
	r := start(t, new(toy), jsonrpc.Options{Gate: newRing(t)})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := r.dial(t)
			c.send(tt.request)
			verb, _, _ := strings.Cut(tt.request, " ")
			got := c.receive(verb)
			if got.status != tt.want || !strings.Contains(got.body, tt.message) {
				t.Fatalf("got %d %s, want %d %s", got.status, got.body, tt.want, tt.message)
			}
			checkBody(t, verb, got)
			challenge := ""
			if tt.want == 401 {
				challenge = "Bearer"
			}
			checkHeader(t, got, "WWW-Authenticate", challenge)
			if strings.Contains(got.body+fmt.Sprint(got.header), wrongKey) {
				t.Errorf("the answer shows a key: %v %s", got.header, got.body)
			}
		})
	}
}

func TestRateOfAKey(t *testing.T) {
	c := start(t, new(toy), jsonrpc.Options{Gate: newRing(t)}).dial(t)
	ask := func(body string) answer {
		t.Helper()
		c.send(request("POST", "/"+limitedKey, body))
		return c.receive("POST")
	}
	two := "[" + call("1", "one", "[]") + "," + call("2", "one", "[]") + "]"
	if got := ask(two); got.status != 200 || got.body != "["+result("1", "1")+","+result("2", "1")+"]" {
		t.Fatalf("got %d %s, want two results", got.status, got.body)
	}
	// Each entry of a batch counts: two of three are used up.
	got := ask(two)
	if want := "[" + fault("1", -32005) + "," + fault("2", -32005) + "]"; got.status != 429 || withoutMessages(t, got.body) != want {
		t.Errorf("got %d %s, want 429 %s", got.status, got.body, want)
	}
	checkHeader(t, got, "Retry-After", "1")
	if got := ask(`{"jsonrpc":"2.0","method":"toy_one"}`); got.status != 204 {
		t.Errorf("got %d %s, want the third call admitted", got.status, got.body)
	}
	got = ask(`{"jsonrpc":"2.0","method":"toy_one"}`)
	if got.status != 429 || withoutMessages(t, got.body) != fault("null", -32005) {
		t.Errorf("got %d %s, want 429 with a body", got.status, got.body)
	}
}

func TestInFlight(t *testing.T) {
	h := &toy{began: make(chan struct{}, 10), release: make(chan struct{})}
	r := start(t, h, jsonrpc.Options{MaxInFlight: 1})
	first := r.dial(t)
	first.send(post(call("1", "block", "[]")))
	<-h.began

	second := r.dial(t)
	second.send(post("[" + call("7", "one", "[]") + `,{"id":8}]`))
	got := second.receive("POST")
	if want := "[" + fault("7", -32005) + "," + fault("8", -32600) + "]"; got.status != 200 || withoutMessages(t, got.body) != want {
		t.Errorf("got %d %s, want 200 %s", got.status, got.body, want)
	}
	if len(h.began) > 0 {
		t.Error("got a session over the limit, want nothing executed")
	}
	close(h.release)
	first.receive("POST")
	second.send(post(call("9", "one", "[]")))
	if got := second.receive("POST"); got.body != result("9", "1") {
		t.Errorf("afterwards: got %s, want a result", got.body)
	}
}

// stamping is a toy whose responses all have a stamp.
type stamping struct{ toy }

func (*stamping) AppendStamp(dst []byte) (string, []byte) {
	return "Toy-Snapshot", append(dst, "now"...)
}

func TestEveryResponseIsStamped(t *testing.T) {
	tests := []struct {
		name, request, want string
	}{
		{"a result has that of its session", post(one), "7"},
		{"a batch has that of its session", post("[" + one + "]"), "7"},
		{"a notification", post(`{"jsonrpc":"2.0","method":"toy_one"}`), "now"},
		{"not JSON", post("{"), "now"},
		{"a health check", request("GET", "/", ""), "now"},
		{"a preflight", request("OPTIONS", "/", "", "Origin: https://a.example", "Access-Control-Request-Method: POST"), "now"},
		{"another path", request("POST", "/x", one), "now"},
		{"another host", "POST / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "now"},
		{"a header that is too long", post(one, "X-Big: "+strings.Repeat("y", 40000)), "now"},
		{"not HTTP", "\x16\x03\x01\x00\x05hello", "now"},
	}
	r := start(t, new(stamping), jsonrpc.Options{CORSOrigins: []string{"*"}})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := r.dial(t)
			c.send(tt.request)
			verb, _, _ := strings.Cut(tt.request, " ")
			checkHeader(t, c.receive(verb), "Toy-Snapshot", tt.want)
		})
	}
	t.Run("pages may read it on a refusal", func(t *testing.T) {
		c := r.dial(t)
		c.send(request("POST", "/x", one, "Origin: https://a.example"))
		got := c.receive("POST")
		checkHeader(t, got, "Access-Control-Allow-Origin", "*")
		checkHeader(t, got, "Access-Control-Expose-Headers", "Toy-Snapshot")
	})
	t.Run("a connection too many", func(t *testing.T) {
		full := start(t, new(stamping), jsonrpc.Options{MaxConnections: 1})
		first := full.dial(t)
		first.send(post(one))
		first.receive("POST")
		got := full.dial(t).receive("POST")
		if got.status != 503 {
			t.Errorf("got %d, want 503", got.status)
		}
		checkHeader(t, got, "Toy-Snapshot", "now")
	})
}

func TestAskedHeaders(t *testing.T) {
	tests := []struct {
		name  string
		asked []string
		lines []string
		want  string
	}{
		{"listed", []string{"At-Least", "Other"}, []string{"At-Least: 5"}, "5"},
		{"listed, in another case", []string{"other", "AT-LEAST"}, []string{"at-least: \t5 "}, "5"},
		{"listed and absent", []string{"At-Least"}, nil, "absent"},
		{"listed and empty", []string{"At-Least"}, []string{"At-Least:"}, ""},
		{"listed and given twice", []string{"At-Least"}, []string{"At-Least: 5", "at-least: 7"}, "5, 7"},
		{"not listed", []string{"Other"}, []string{"At-Least: 5"}, "5"},
		{"one too many listed", []string{"A", "B", "C", "D", "At-Least"}, []string{"At-Least: 5"}, "5"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := &toy{at: make(chan string, 1)}
			c := start(t, h, jsonrpc.Options{Headers: tt.asked}).dial(t)
			c.send(post(one, tt.lines...))
			c.receive("POST")
			if got := <-h.at; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestMaxHeader(t *testing.T) {
	r := start(t, new(toy), jsonrpc.Options{MaxHeader: 1024})
	for size, want := range map[int]int{100: 200, 2000: 431} {
		c := r.dial(t)
		c.send(post(one, "X: "+strings.Repeat("y", size)))
		if got := c.receive("POST"); got.status != want {
			t.Errorf("a header of %d bytes: got %d, want %d", size, got.status, want)
		}
	}
}

// Bodies that have been announced and answers that nobody reads are memory,
// and there is a bound on all of them together.
func TestLongBodiesAndAnswersShareABound(t *testing.T) {
	r := start(t, new(toy), jsonrpc.Options{MaxHeld: 1 << 20})
	waiting := r.dial(t)
	waiting.send(request("POST", "/", strings.Repeat(" ", 800<<10))[:1000])
	honest := r.dial(t)
	for held := false; !held; {
		held = r.server.Stats().Held >= 700<<10
		honest.send(post(one)) // what is short does not count
		if got := honest.receive("POST"); got.body != result("1", "1") {
			t.Fatalf("got %s, want a result", got.body)
		}
	}
	// What there is no room for is refused before memory is set aside for it.
	long := request("POST", "/", padded(5<<20))[:1000]
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 20 {
		c := r.dial(t)
		c.send(long)
		if got := c.receive("POST"); got.status != 503 {
			t.Errorf("a body over the bound: got %d %s, want 503", got.status, got.body)
		}
		c.Close()
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 20<<20 {
		t.Errorf("refusing 20 bodies took %d MiB, want no memory for them", got>>20)
	}
	c := r.dial(t)
	c.send(post(padded(400 << 10)))
	if got := c.receive("POST"); got.status != 503 || withoutMessages(t, got.body) != fault("null", -32005) {
		t.Errorf("a body over the bound: got %d %s, want 503", got.status, got.body)
	}
	honest.send(post(call("3", "kilobytes", "[500]")))
	if got := honest.receive("POST"); got.status != 200 || withoutMessages(t, got.body) != fault("3", -32005) {
		t.Errorf("an answer over the bound: got %d %.200s, want -32005", got.status, got.body)
	}
	waiting.Close()
	for r.server.Stats().Held > 0 {
		honest.send(post(one))
		honest.receive("POST")
	}
	honest.send(post(call("3", "kilobytes", "[500]")))
	if got := honest.receive("POST"); len(got.body) < 500000 {
		t.Errorf("afterwards: got %.200s, want the answer", got.body)
	}
	honest.send(post(padded(400 << 10)))
	honest.receive("POST")
	for r.server.Stats().Held > 0 { // although the connection goes on
		honest.send(post(one))
		honest.receive("POST")
	}
}
