// SPDX-License-Identifier: Apache-2.0

package jsonrpc_test

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"glimpse/jsonrpc"
)

// bodies returns request bodies of all sorts, one quoted string per line.
func bodies(t testing.TB) (list [][]byte) {
	t.Helper()
	text, err := os.ReadFile("testdata/bodies.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		body, err := strconv.Unquote(strings.TrimSpace(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		list = append(list, []byte(body))
	}
	return list
}

// FuzzFastAgreesWithCareful holds the fast parser to what the careful one
// reads.
func FuzzFastAgreesWithCareful(f *testing.F) {
	for _, body := range bodies(f) {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if difference := jsonrpc.Compare(body, 3); difference != "" {
			t.Errorf("fast parser of %q: %s", body, difference)
		}
	})
}

// FuzzValid compares what is accepted as JSON with encoding/json.
func FuzzValid(f *testing.F) {
	for _, body := range bodies(f) {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		want := json.Valid(body) && utf8.Valid(body) && depth(body) <= jsonrpc.MaxDepth
		if got := jsonrpc.Valid(body); got != want {
			t.Errorf("valid(%q) = %v, want %v", body, got, want)
		}
	})
}

// depth returns how deep valid JSON is nested.
func depth(body []byte) (deepest int) {
	level, inString := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '[' || c == '{':
			level++
			deepest = max(deepest, level)
		case c == ']' || c == '}':
			level--
		}
	}
	return deepest
}

// FuzzAnswer checks that any body gets an answer that is JSON, or none at all
// because it holds notifications only.
func FuzzAnswer(f *testing.F) {
	for _, body := range bodies(f) {
		f.Add(string(body))
	}
	f.Fuzz(func(t *testing.T, body string) {
		got := jsonrpc.Answer(new(toy), jsonrpc.Options{MaxBatch: 3, MaxResponse: 10000}, body)
		if got != "" && !jsonrpc.Valid([]byte(got)) {
			t.Errorf("answer to %q is not JSON: %q", body, got)
		}
		if got == "" && !strings.Contains(body, "jsonrpc") && !strings.Contains(body, `\`) {
			t.Errorf("no answer to %q", body)
		}
	})
}

func TestUsualBodiesAreReadFast(t *testing.T) {
	storage := `{"jsonrpc":"2.0","id":17,"method":"eth_getStorageAt","params":["0x7dcd17433742f4c0ca53122ab541d0ba67fc27df","0x0","latest"]}`
	tests := []struct {
		name, body string
		want       bool
	}{
		{"a call", storage, true},
		{"a call without params", `{"method":"eth_chainId","id":"a-b","jsonrpc":"2.0"}`, true},
		{"a notification", `{"jsonrpc":"2.0","method":"eth_chainId","params":[ true, false , null,-12 , 0 ]}`, true},
		{"a batch of 1000", "[" + strings.Repeat(storage+", ", 999) + storage + "]", true},
		{"a batch of 1001", "[" + strings.Repeat(storage+",", 1000) + storage + "]", false},
		{"an id that is a boolean", `{"jsonrpc":"2.0","id":true,"method":"x"}`, false},
		{"an object as a parameter", `{"jsonrpc":"2.0","id":1,"method":"x","params":[{}]}`, false},
		{"a fraction", `{"jsonrpc":"2.0","id":1.5,"method":"x"}`, false},
		{"a leading zero", `{"jsonrpc":"2.0","id":01,"method":"x"}`, false},
	}
	reader := jsonrpc.NewReader()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := reader.Fast([]byte(tt.body)); got != tt.want {
				t.Errorf("read fast: got %v, want %v", got, tt.want)
			}
			if difference := jsonrpc.Compare([]byte(tt.body), 1000); difference != "" {
				t.Error(difference)
			}
		})
	}
}
