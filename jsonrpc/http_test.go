// SPDX-License-Identifier: Apache-2.0

package jsonrpc_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"glimpse/jsonrpc"
)

const one = `{"jsonrpc":"2.0","id":1,"method":"toy_one","params":[]}`

func TestHTTPStatus(t *testing.T) {
	json1 := "Content-Type: application/json\r\n"
	length := fmt.Sprintf("Content-Length: %d\r\n", len(one))
	local := "Host: localhost\r\n"
	tests := []struct {
		name, request string
		want          int
	}{
		// D1, D14
		{"a result", post(one), 200},
		{"an unknown method", post(`{"jsonrpc":"2.0","id":1,"method":"foo"}`), 200},
		{"not JSON", post("{"), 200},
		{"no body", post(""), 200},
		{"a notification", post(`{"jsonrpc":"2.0","method":"toy_one"}`), 204},
		{"a batch of notifications", post(`[{"jsonrpc":"2.0","method":"toy_one"}]`), 204},
		// D20
		{"a query is ignored", "POST /?q=1 HTTP/1.1\r\n" + local + json1 + length + "\r\n" + one, 200},
		{"another path", "POST /foo HTTP/1.1\r\n" + local + json1 + length + "\r\n" + one, 404},
		{"a path that only cleans up to the root", "POST /a/.. HTTP/1.1\r\n" + local + json1 + length + "\r\n" + one, 404},
		{"two slashes", "POST // HTTP/1.1\r\n" + local + json1 + length + "\r\n" + one, 404},
		{"an absolute target", "POST http://localhost/ HTTP/1.1\r\n" + local + json1 + length + "\r\n" + one, 200},
		{"an absolute target on another host", "POST http://evil.example/ HTTP/1.1\r\n" + local + json1 + length + "\r\n" + one, 403},
		{"GET is a health check", "GET / HTTP/1.1\r\n" + local + "\r\n", 200},
		{"HEAD is a health check", "HEAD / HTTP/1.1\r\n" + local + "\r\n", 200},
		{"GET with a query", "GET /?x HTTP/1.1\r\n" + local + "\r\n", 405},
		{"GET with a body", "GET / HTTP/1.1\r\n" + local + json1 + length + "\r\n" + one, 405},
		{"GET of another path", "GET /health HTTP/1.1\r\n" + local + "\r\n", 404},
		{"PUT", "PUT / HTTP/1.1\r\n" + local + json1 + length + "\r\n" + one, 405},
		{"a verb in lower case", "post / HTTP/1.1\r\n" + local + json1 + length + "\r\n" + one, 405},
		{"an unknown verb", "FOO / HTTP/1.1\r\n" + local + json1 + length + "\r\n" + one, 405},
		{"OPTIONS of the server", "OPTIONS * HTTP/1.1\r\n" + local + "\r\n", 200},
		{"OPTIONS that is no preflight", "OPTIONS / HTTP/1.1\r\n" + local + "\r\n", 405},
		{"a preflight", "OPTIONS / HTTP/1.1\r\n" + local + "Origin: https://a.example\r\nAccess-Control-Request-Method: POST\r\n\r\n", 204},
		{"a WebSocket upgrade", "GET / HTTP/1.1\r\n" + local + "Connection: Upgrade\r\nUpgrade: WebSocket\r\n\r\n", 400},
		// D21
		{"json-rpc as a type", "POST / HTTP/1.1\r\n" + local + "Content-Type: Application/JSON-RPC\r\n" + length + "\r\n" + one, 200},
		{"parameters of a type are ignored", "POST / HTTP/1.1\r\n" + local + "Content-Type: application/jsonrequest ; charset=x\r\n" + length + "\r\n" + one, 200},
		{"no type", "POST / HTTP/1.1\r\n" + local + length + "\r\n" + one, 415},
		{"a type that pages may send", "POST / HTTP/1.1\r\n" + local + "Content-Type: text/plain\r\n" + length + "\r\n" + one, 415},
		{"a list of types", "POST / HTTP/1.1\r\n" + local + "Content-Type: application/json, text/plain\r\n" + length + "\r\n" + one, 415},
		{"two types", post(one, "Content-Type: application/json"), 415},
		{"an encoded body", post(one, "Content-Encoding: gzip"), 415},
		// D22
		{"no host in HTTP/1.1", "POST / HTTP/1.1\r\n" + json1 + length + "\r\n" + one, 400},
		{"no host in HTTP/1.0", "POST / HTTP/1.0\r\n" + json1 + length + "\r\n" + one, 200},
		{"two hosts", post(one, "Host: evil.example"), 400},
		{"another host", "POST / HTTP/1.1\r\nHost: evil.example\r\n" + json1 + length + "\r\n" + one, 403},
		// Framing
		{"an unknown expectation", post(one, "Expect: 200-ok"), 417},
		{"two lengths", post(one, "Content-Length: 5"), 400},
		{"a length and chunks", post("3\r\n{} \r\n0\r\n\r\n", "Transfer-Encoding: chunked"), 400},
		{"the encoding identity", post(one, "Transfer-Encoding: identity"), 400},
		{"an unknown transfer encoding", "POST / HTTP/1.1\r\n" + local + json1 + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400},
		{"a bad chunk", "POST / HTTP/1.1\r\n" + local + json1 + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", 400},
		{"a folded line", post(one, "X-A: b", " c"), 400},
		{"space before the colon", post(one, "X-A : b"), 400},
		{"a header of 20 kB", post(one, "X-Big: "+strings.Repeat("y", 20000)), 200},
		{"a header of 40 kB", post(one, "X-Big: "+strings.Repeat("y", 40000)), 431},
		{"the HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
		{"TLS", "\x16\x03\x01\x00\x05hello", 400},
	}
	r := start(t, new(toy), jsonrpc.Options{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := r.dial(t)
			c.send(tt.request)
			method, _, _ := strings.Cut(tt.request, " ")
			got := c.receive(method)
			if got.status != tt.want {
				t.Fatalf("got %d %s, want %d", got.status, got.body, tt.want)
			}
			checkBody(t, method, got)
		})
	}
}

// checkBody checks what D1 and D2 promise of every body.
func checkBody(t *testing.T, method string, got answer) {
	t.Helper()
	if method != "POST" && got.status < 300 || got.status == http.StatusNoContent {
		if got.body != "" {
			t.Errorf("got body %q, want none", got.body)
		}
		return
	}
	if kind := got.header.Get("Content-Type"); kind != "application/json" {
		t.Errorf("got content type %q, want application/json", kind)
	}
	if n := got.header.Get("Content-Length"); n != fmt.Sprint(len(got.body)) {
		t.Errorf("got content length %q, want %d", n, len(got.body))
	}
	if got.status == http.StatusMethodNotAllowed && got.header.Get("Allow") == "" {
		t.Error("got 405 without Allow, want one")
	}
	var response struct {
		JSONRPC string
		ID      json.RawMessage
		Error   *struct{ Code int }
	}
	if err := json.Unmarshal([]byte(got.body), &response); err != nil || response.JSONRPC != "2.0" || strings.HasSuffix(got.body, "\n") {
		t.Errorf("got body %q, want one JSON-RPC response (%v)", got.body, err)
	}
	if got.status >= 400 && (string(response.ID) != "null" || response.Error == nil) {
		t.Errorf("got body %q, want an error with id null", got.body)
	}
}

func TestRefusalsThatCloseTheConnection(t *testing.T) {
	for _, request := range []string{
		post("3\r\n{} \r\n0\r\n\r\n", "Transfer-Encoding: chunked"),
		post(one, "Transfer-Encoding: identity"),
		post(one, "Content-Length: 5"),
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		t.Run(request[:16], func(t *testing.T) {
			c := start(t, new(toy), jsonrpc.Options{}).dial(t)
			c.send(request)
			if got := c.receive("POST"); !got.close {
				t.Errorf("got %v, want Connection: close", got.header)
			}
			c.receiveEnd()
		})
	}
}

func TestHosts(t *testing.T) {
	tests := []struct {
		host string
		want bool
	}{
		{"localhost", true}, {"LocalHost:8545", true}, {"", true},
		{"127.0.0.1", true}, {"10.1.2.3:80", true}, {"[::1]", true}, {"[::1]:8545", true}, {"[2001:db8::7]:1", true},
		{"node.example", true}, {"node.example:1", true},
		{"localhost.", false}, {"evil.example", false}, {"localhost.evil.example", false}, {"evil.example:8545", false},
		{"127.0.0.1.evil.example", false}, {"1.2.3", false}, {"1.2.3.4.5", false}, {"256.1.1.1", false}, {"01.1.1.1", false}, {"1..2.3", false},
		{"localhost:80x", false}, {"::1", false}, {"[::1", false}, {"[::1]x", false}, {"[127.0.0.1]", false}, {"[evil]", false},
	}
	for _, tt := range tests {
		t.Run(tt.host, func(t *testing.T) {
			if got := jsonrpc.HostAllowed([]string{"localhost", "Node.Example"}, tt.host); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	if !jsonrpc.HostAllowed([]string{"*"}, "evil.example") {
		t.Error("got another host refused, want the star to allow it")
	}
	if jsonrpc.HostAllowed([]string{}, "localhost") {
		t.Error("got localhost allowed, want an empty list to allow no name")
	}
}

func TestAcceptsGzip(t *testing.T) {
	tests := []struct {
		accept string
		want   bool
	}{
		{"gzip", true}, {"deflate, GZIP;q=0.5, br", true}, {"x-gzip", true}, {"*", true}, {"br;q=1.0, gzip;q=0.001", true},
		{"", false}, {"identity", false}, {"gzip;q=0", false}, {"gzip; q=0.000", false}, {"*;q=0", false},
		{"gzip;q=0, *", false}, {"*, gzip;q=0", false}, {"gzip;q=x", false}, {"gzipped", false},
	}
	for _, tt := range tests {
		t.Run(tt.accept, func(t *testing.T) {
			if got := jsonrpc.AcceptsGzip([]byte(tt.accept)); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestCompression(t *testing.T) {
	tests := []struct {
		name, kilobytes, line string
		zipped, vary          bool
	}{
		{"a short answer", "0", "Accept-Encoding: gzip", false, false},
		{"a long answer", "2", "Accept-Encoding: gzip", true, true},
		{"a very long answer", "900", "Accept-Encoding: gzip", true, true},
		{"a long answer without being asked", "2", "X: y", false, true},
		{"a long answer with gzip refused", "900", "Accept-Encoding: gzip;q=0", false, true},
	}
	r := start(t, new(toy), jsonrpc.Options{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := r.dial(t)
			c.send(post(call("1", "kilobytes", "["+tt.kilobytes+"]"), tt.line))
			got := c.receive("POST")
			if vary := got.header.Get("Vary") == "Accept-Encoding"; vary != tt.vary {
				t.Errorf("got Vary %q, want one: %v", got.header.Get("Vary"), tt.vary)
			}
			zipped := got.header.Get("Content-Encoding") == "gzip"
			if zipped != tt.zipped {
				t.Fatalf("got compressed %v, want %v", zipped, tt.zipped)
			}
			body := got.body
			if zipped {
				unzip, err := gzip.NewReader(strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				plain, err := io.ReadAll(unzip)
				if err != nil {
					t.Fatal(err)
				}
				body = string(plain)
			}
			n := 0
			fmt.Sscan(tt.kilobytes, &n)
			if want := result("1", `"`+strings.Repeat("x", n*1000)+`"`); body != want {
				t.Errorf("got %.80q of %d bytes, want %.80q of %d", body, len(body), want, len(want))
			}
		})
	}
}

func TestCORS(t *testing.T) {
	preflight := "OPTIONS / HTTP/1.1\r\nHost: localhost\r\nOrigin: %s\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type\r\n\r\n"
	tests := []struct {
		name             string
		origins          []string
		origin, want     string
		vary, stampShown string
	}{
		{"nothing is said by default", nil, "https://a.example", "", "", ""},
		{"a configured origin", []string{"https://a.example"}, "https://a.example", "https://a.example", "Origin", "Toy-Snapshot"},
		{"another origin", []string{"https://a.example"}, "https://b.example", "", "Origin", ""},
		{"any origin", []string{"*"}, "https://b.example", "*", "", "Toy-Snapshot"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := start(t, new(toy), jsonrpc.Options{CORSOrigins: tt.origins})
			c := r.dial(t)
			c.send(fmt.Sprintf(preflight, tt.origin))
			got := c.receive("OPTIONS")
			methods := ""
			if tt.want != "" {
				methods = "POST"
			}
			checkHeader(t, got, "Access-Control-Allow-Origin", tt.want)
			checkHeader(t, got, "Access-Control-Allow-Methods", methods)
			checkHeader(t, got, "Vary", tt.vary)

			c.send(post(one, "Origin: "+tt.origin))
			got = c.receive("POST")
			checkHeader(t, got, "Access-Control-Allow-Origin", tt.want)
			checkHeader(t, got, "Access-Control-Expose-Headers", tt.stampShown)
			checkHeader(t, got, "Vary", tt.vary)
		})
	}
}

func checkHeader(t *testing.T, a answer, name, want string) {
	t.Helper()
	if got := a.header.Get(name); got != want {
		t.Errorf("%s: got %q, want %q", name, got, want)
	}
}

func TestHeaderSeam(t *testing.T) {
	h := &toy{at: make(chan string, 1)}
	c := start(t, h, jsonrpc.Options{}).dial(t)
	c.send(post(one, "At-Least: 12.3"))
	got := c.receive("POST")
	checkHeader(t, got, "Toy-Snapshot", "7")
	if at := <-h.at; at != "12.3" {
		t.Errorf("Begin saw %q, want 12.3", at)
	}
}
