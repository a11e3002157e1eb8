// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"glimpse/internal/fixture"
)

// A rpcCase is one recorded odd request with the answer that it must get.
type rpcCase struct {
	Name    string
	Request caseRequest
	Expect  caseAnswer
}

type caseRequest struct {
	Method, Path string
	HTTPVersion  string          `json:"http_version"`
	Headers      json.RawMessage // in the order in which they are sent
	Body         *string
	BodyB64      []byte `json:"body_b64"`
	BodyGzB64    []byte `json:"body_gz_b64"`
	Raw          *string
	RawB64       []byte `json:"raw_b64"`
	Expect       any
	Repeat       any
	Pipeline     any
}

type caseAnswer struct {
	Why    string
	HTTP   json.RawMessage
	Code   json.Number
	ID     json.RawMessage
	Result json.RawMessage
	Body   json.RawMessage
}

func TestRPCCases(t *testing.T) {
	dir := fixture.RPCCases(t)
	datadir := t.TempDir()
	importEmptyBlocks(t, datadir, filepath.Join(dir, "genesis.json"), 3)
	s := serve(t, "serve", "--datadir", datadir, "--http.port", "0")

	file, err := os.Open(filepath.Join(dir, "cases.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c := caseRunner{addr: s.addr, words: placeholders(t, s)}
	ran := 0
	for lines := json.NewDecoder(bufio.NewReader(file)); lines.More(); ran++ {
		var tc rpcCase
		if err := lines.Decode(&tc); err != nil {
			t.Fatal(err)
		}
		t.Run(tc.Name, func(t *testing.T) {
			t.Parallel()
			got, err := c.send(tc.Request)
			if err != nil {
				t.Fatal(err)
			}
			if why := tc.Expect.judge(got); why != "" {
				t.Errorf("%s  [%s]", why, tc.Expect.Why)
			}
			if got.status == http.StatusOK && tc.Request.isCall() {
				c.overWebSocket(t, s, &tc)
			}
		})
	}
	if ran == 0 {
		t.Error("no cases were run")
	}
}

// isCall reports whether the oddity of a request is in its body, so that it can
// be sent in another way.
func (q *caseRequest) isCall() bool {
	return q.Method == http.MethodPost && q.Raw == nil && q.RawB64 == nil && q.Expect == nil && q.Repeat == nil && q.Pipeline == nil
}

// overWebSocket sends the body of a case over a WebSocket. It goes in a binary
// frame, since some bodies are not text.
func (c *caseRunner) overWebSocket(t *testing.T, s *server, tc *rpcCase) {
	body, err := c.body(tc.Request)
	if err != nil {
		t.Fatal(err)
	}
	w := s.dial(t)
	got := caseReply{http.StatusOK, w.askAs(t, websocket.MessageBinary, []byte(body))}
	if why := tc.Expect.judge(got); why != "" {
		t.Errorf("over WebSocket: %s  [%s]", why, tc.Expect.Why)
	}
}

type caseRunner struct {
	addr  string
	words *strings.Replacer
}

// placeholders maps the words in @…@ to what they mean on this server.
func placeholders(t *testing.T, s *server) *strings.Replacer {
	t.Helper()
	var head, one struct{ Hash, Number string }
	if err := json.Unmarshal(call(t, s.url(), "eth_getBlockByNumber", "latest", false), &head); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(call(t, s.url(), "eth_getBlockByNumber", "0x1", false), &one); err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseUint(head.Number, 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(
		"@HEAD@", head.Hash, "@HASH1@", one.Hash,
		"@FUT@", fmt.Sprintf("%#x", n+1_000_000), "@HEAD1@", fmt.Sprintf("%#x", n+100_000),
		"@HEADNOX@", head.Hash[2:], "@HEADUP@", "0x"+strings.ToUpper(head.Hash[2:]),
		"@HOST@", "127.0.0.1:"+port, "@PORT@", port,
		"@CHECKSUM@", "0x7Dcd17433742F4c0Ca53122aB541D0Ba67fC27Df",
		"@BADSUM@", "0x7dcd17433742F4c0Ca53122aB541D0Ba67fC27Df")
}

var (
	repeated = regexp.MustCompile(`@REPEAT:(.):(\d+)@`)
	rawToken = regexp.MustCompile(`"@RAW:([^@]*)@"`)
)

func (c *caseRunner) fill(s string) string {
	s = repeated.ReplaceAllStringFunc(c.words.Replace(s), func(m string) string {
		parts := repeated.FindStringSubmatch(m)
		n, _ := strconv.Atoi(parts[2]) // the pattern allows digits only
		return strings.Repeat(parts[1], n)
	})
	return rawToken.ReplaceAllString(s, "$1")
}

func (c *caseRunner) body(q caseRequest) (string, error) {
	switch {
	case q.Body != nil:
		return c.fill(*q.Body), nil
	case q.BodyB64 != nil:
		return c.fill(string(q.BodyB64)), nil
	case q.BodyGzB64 != nil:
		r, err := gzip.NewReader(bytes.NewReader(q.BodyGzB64))
		if err != nil {
			return "", err
		}
		data, err := io.ReadAll(r)
		return c.fill(string(data)), err
	}
	return "", nil
}

// A caseReply is what came back; status 0 is a connection closed without an
// answer.
type caseReply struct {
	status int
	body   []byte
}

func (c *caseRunner) send(q caseRequest) (caseReply, error) {
	body, err := c.body(q)
	if err != nil {
		return caseReply{}, err
	}
	conn, err := net.Dial("tcp", c.addr)
	if err != nil {
		return caseReply{}, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return caseReply{}, err
	}
	in := bufio.NewReader(conn)
	if q.Raw != nil || q.RawB64 != nil {
		wire := string(q.RawB64)
		if q.Raw != nil {
			wire = *q.Raw
		}
		wire = strings.ReplaceAll(c.fill(wire), "@LEN@", strconv.Itoa(len(body))) + body
		write(conn, wire)
		return receive(in, q.Method), nil
	}
	head, chunked, err := c.head(q, len(body))
	if err != nil {
		return caseReply{}, err
	}
	if chunked {
		body = chunk(body)
	}
	switch {
	case q.Expect != nil:
		write(conn, head)
		if interim := receive(in, q.Method); interim.status != http.StatusContinue && interim.status != 0 {
			return interim, nil
		}
		write(conn, body)
	case q.Repeat != nil:
		write(conn, head+body)
		receive(in, q.Method)
		write(conn, head+body)
	case q.Pipeline != nil:
		write(conn, head+body+head+body)
		receive(in, q.Method)
	default:
		write(conn, head+body)
	}
	return receive(in, q.Method), nil
}

// write sends what the server will take; one that answers early may close
// before it has read everything, which receive then shows.
func write(conn net.Conn, s string) { _, _ = io.WriteString(conn, s) }

// head renders the request line and headers, in the order of the case.
func (c *caseRunner) head(q caseRequest, length int) (head string, chunked bool, err error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/%s\r\n", q.Method, q.Path, q.HTTPVersion)
	dec := json.NewDecoder(bytes.NewReader(q.Headers))
	if _, err := dec.Token(); err != nil {
		return "", false, err
	}
	for dec.More() {
		var pair [2]string
		for i := range pair {
			token, err := dec.Token()
			if err != nil {
				return "", false, err
			}
			pair[i] = token.(string)
		}
		value := strings.ReplaceAll(c.fill(pair[1]), "@LEN@", strconv.Itoa(length))
		fmt.Fprintf(&b, "%s: %s\r\n", pair[0], value)
		chunked = chunked || strings.EqualFold(pair[0], "Transfer-Encoding")
	}
	return b.String() + "\r\n", chunked, nil
}

func chunk(body string) string {
	var b strings.Builder
	for part := range slices.Chunk([]byte(body), max(7, len(body)/50+1)) {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(part), part)
	}
	return b.String() + "0\r\n\r\n"
}

func receive(in *bufio.Reader, method string) caseReply {
	resp, err := http.ReadResponse(in, &http.Request{Method: method})
	if err != nil {
		return caseReply{}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return caseReply{}
	}
	return caseReply{resp.StatusCode, body}
}

// judge returns why got is not what was expected, or nothing.
func (want *caseAnswer) judge(got caseReply) string {
	if !slices.Contains(want.statuses(), got.status) {
		return fmt.Sprintf("status %d, want %s: %.200s", got.status, want.HTTP, got.body)
	}
	if got.status != http.StatusOK || want.Code == "" && want.Result == nil && want.Body == nil {
		return ""
	}
	var doc, body, result any
	if err := exactly(got.body, &doc); err != nil {
		return fmt.Sprintf("body is not JSON: %.200q", got.body)
	}
	if want.Body != nil {
		mustParse(want.Body, &body)
		if !reflect.DeepEqual(onlyCodes(doc), onlyCodes(body)) {
			return fmt.Sprintf("got %.300s\nwant %.300s", got.body, want.Body)
		}
		return ""
	}
	answer, ok := doc.(map[string]any)
	if !ok {
		return fmt.Sprintf("not one object: %.200s", got.body)
	}
	if want.ID != nil {
		var id any
		mustParse(want.ID, &id)
		if !reflect.DeepEqual(answer["id"], id) {
			return fmt.Sprintf("id %v, want %s", answer["id"], want.ID)
		}
	}
	if want.Code != "" {
		if e, ok := errorOf(doc); !ok || e["code"] != want.Code {
			return fmt.Sprintf("got %.300s, want code %v", got.body, want.Code)
		}
		return ""
	}
	mustParse(want.Result, &result)
	if !reflect.DeepEqual(answer["result"], result) {
		return fmt.Sprintf("got %.300s, want result %s", got.body, want.Result)
	}
	return ""
}

func (want *caseAnswer) statuses() (list []int) {
	if json.Unmarshal(want.HTTP, &list) == nil {
		return list
	}
	var one int
	mustParse(want.HTTP, &one)
	return []int{one}
}

// mustParse is for parts of the case file, which was valid JSON as a whole.
func mustParse(data []byte, v any) {
	if err := exactly(data, v); err != nil {
		panic(err)
	}
}

// exactly is json.Unmarshal without turning numbers into floats: an id may have
// four hundred digits.
func exactly(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("more than one value: %w", err)
	}
	return nil
}

// onlyCodes takes the free parts of errors out of a response: message and data.
func onlyCodes(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = onlyCodes(x)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = onlyCodes(x)
		}
		if e, ok := v["error"].(map[string]any); ok {
			out["error"] = e["code"]
		}
		return out
	}
	return v
}
