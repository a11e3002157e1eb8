// SPDX-License-Identifier: Apache-2.0

package jsonrpc_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"glimpse/jsonrpc"
)

const mib = 1 << 20

// padded is a call with space up to a length.
func padded(size int) string { return one + strings.Repeat(" ", size-len(one)) }

func chunked(body string) string {
	head := "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
	half := len(body) / 2
	return fmt.Sprintf("%s%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", head, half, body[:half], len(body)-half, body[half:])
}

// A client that sends everything before it reads must still see the answer:
// the server may not reset the connection under it.
func TestBodySize(t *testing.T) {
	tests := []struct {
		name, request string
		want          int
	}{
		{"exactly the limit", post(padded(5 * mib)), 200},
		{"exactly the limit in chunks", chunked(padded(5 * mib)), 200},
		{"one byte more", post(padded(5*mib + 1)), 413},
		{"one byte more in chunks", chunked(padded(5*mib + 1)), 413},
		{"far more", post(padded(20 * mib)), 413},
		{"far more in chunks", chunked(padded(20 * mib)), 413},
	}
	r := start(t, new(toy), jsonrpc.Options{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := r.dial(t)
			c.send(tt.request)
			got := c.receive("POST")
			if got.status != tt.want {
				t.Fatalf("got %d %s, want %d", got.status, got.body, tt.want)
			}
			checkBody(t, "POST", got)
			if tt.want != http.StatusOK {
				c.CloseWrite()
				c.receiveEnd()
			}
		})
	}
}

func TestExpectContinue(t *testing.T) {
	head := "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: %s\r\nContent-Length: %d\r\n\r\n"
	tests := []struct {
		name   string
		expect string
		length int
		want   int
	}{
		{"a length within the limit is asked for", "100-continue", len(one), http.StatusContinue},
		{"in any case", "100-Continue", len(one), http.StatusContinue},
		{"a length over the limit is refused at once", "100-continue", 5*mib + 1, http.StatusRequestEntityTooLarge},
	}
	r := start(t, new(toy), jsonrpc.Options{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := r.dial(t)
			c.send(fmt.Sprintf(head, tt.expect, tt.length))
			line, err := c.r.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf("HTTP/1.1 %d ", tt.want); !strings.HasPrefix(line, want) {
				t.Fatalf("got %q, want %q", line, want)
			}
			if tt.want != http.StatusContinue {
				return
			}
			if _, err := c.r.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			c.send(one)
			if got := c.receive("POST"); got.body != result("1", "1") {
				t.Errorf("got %s, want %s", got.body, result("1", "1"))
			}
		})
	}
}

func TestPipelinedRequests(t *testing.T) {
	c := start(t, new(toy), jsonrpc.Options{}).dial(t)
	c.send(post(call("1", "one", "[]")) + post(call("2", "kilobytes", "[300]")) + post(call("3", "one", "[]"), "Connection: Close"))
	for i := range 3 {
		want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,`, i+1)
		if got := c.receive("POST"); !strings.HasPrefix(got.body, want) {
			t.Errorf("answer %d: got %.60s, want %s", i, got.body, want)
		}
	}
	c.receiveEnd()
}

// Answers of every size class go through reused buffers; none may show what
// an earlier one left.
func TestAnswersDoNotMix(t *testing.T) {
	c := start(t, new(toy), jsonrpc.Options{}).dial(t)
	for _, n := range []int{900, 0, 70, 2, 1200, 1, 0} {
		c.send(post(call("1", "kilobytes", fmt.Sprintf("[%d]", n))))
		want := result("1", `"`+strings.Repeat("x", n*1000)+`"`)
		if got := c.receive("POST"); got.body != want {
			t.Errorf("got %d bytes, want %d", len(got.body), len(want))
		}
		c.send(post(one))
		if got := c.receive("POST"); got.body != result("1", "1") {
			t.Errorf("after %d kB: got %.100s, want %s", n, got.body, result("1", "1"))
		}
	}
}

func (c *client) CloseWrite() {
	c.Helper()
	if err := c.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		c.Fatal(err)
	}
}
