// SPDX-License-Identifier: Apache-2.0

package jsonrpc_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"glimpse/jsonrpc"
)

func fault(id string, code int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d}}`, id, code)
}

func result(id, value string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, value)
}

// withoutMessages takes the free part of errors out of a response.
func withoutMessages(t *testing.T, response string) string {
	t.Helper()
	if response != "" && !json.Valid([]byte(response)) {
		t.Fatalf("response is not JSON: %q", response)
	}
	for {
		start := strings.Index(response, `,"message":"`)
		if start < 0 {
			return response
		}
		end := start + len(`,"message":"`)
		for response[end] != '"' {
			if response[end] == '\\' {
				end++
			}
			end++
		}
		response = response[:start] + response[end+1:]
	}
}

func TestEnvelope(t *testing.T) {
	long := strings.Repeat("x", 2048)
	tests := []struct{ name, body, want string }{
		{"a call is answered with its id", call("1", "one", "[]"), result("1", "1")},
		{"members in any order and with space", " { \"params\" : [ ] , \"method\":\"toy_one\",\n\"id\":1,\t\"jsonrpc\":\"2.0\" } ", result("1", "1")},
		{"absent params are none", `{"jsonrpc":"2.0","id":1,"method":"toy_one"}`, result("1", "1")},
		{"null params are none", call("1", "one", "null"), result("1", "1")},
		{"the first parameter arrives as written", call("1", "echo", `[ {"a":[1, 2]} ,2]`), result("1", `{"a":[1, 2]}`)},

		{"ids are echoed byte for byte: fraction", call("1.0", "one", "[]"), result("1.0", "1")},
		{"ids are echoed byte for byte: exponent", call("-0E+7", "one", "[]"), result("-0E+7", "1")},
		{"ids are echoed byte for byte: many digits", call(strings.Repeat("9", 400), "one", "[]"), result(strings.Repeat("9", 400), "1")},
		{"ids are echoed byte for byte: escapes", call(`"\u0041\ud800/"`, "one", "[]"), result(`"\u0041\ud800/"`, "1")},
		{"ids are echoed byte for byte: not ASCII", call(`"é☃😀"`, "one", "[]"), result(`"é☃😀"`, "1")},
		{"an id of null is a call", call("null", "one", "[]"), result("null", "1")},
		{"an id cannot be a boolean", call("true", "one", "[]"), fault("null", -32600)},
		{"an id cannot be an array", call("[1]", "one", "[]"), fault("null", -32600)},
		{"an id cannot be an object", call("{}", "one", "[]"), fault("null", -32600)},

		{"a notification is not answered", `{"jsonrpc":"2.0","method":"toy_one"}`, ""},
		{"a notification is not executed", `{"jsonrpc":"2.0","method":"toy_panic","params":7}`, ""},
		{"without a version it is no notification", `{"method":"toy_one"}`, fault("null", -32600)},
		{"without a method it is no notification", `{"jsonrpc":"2.0"}`, fault("null", -32600)},
		{"the version must be there", `{"id":5,"method":"toy_one"}`, fault("5", -32600)},
		{"the version must be 2.0", `{"jsonrpc":"1.0","id":5,"method":"toy_one"}`, fault("5", -32600)},
		{"the version must be a string", `{"jsonrpc":2.0,"id":5,"method":"toy_one"}`, fault("5", -32600)},
		{"the version may be written with escapes", `{"jsonrpc":"2\u002e0","id":5,"method":"toy_one"}`, result("5", "1")},
		{"a response sent as a request keeps its id", result("9", "1"), fault("9", -32600)},

		{"an unknown method", `{"jsonrpc":"2.0","id":1,"method":"foo"}`, fault("1", -32601)},
		{"an unknown method wins over the shape of params", `{"jsonrpc":"2.0","id":1,"method":"foo","params":{}}`, fault("1", -32601)},
		{"params as an object", call("1", "one", "{}"), fault("1", -32602)},
		{"params as a string", call("1", "one", `"x"`), fault("1", -32602)},
		{"an empty method", `{"jsonrpc":"2.0","id":1,"method":""}`, fault("1", -32600)},
		{"a method that is null", `{"jsonrpc":"2.0","id":1,"method":null}`, fault("1", -32600)},
		{"a method of 2048 bytes", `{"jsonrpc":"2.0","id":1,"method":"` + long + `"}`, fault("1", -32601)},
		{"a method of 2049 bytes", `{"jsonrpc":"2.0","id":1,"method":"` + long + `x"}`, fault("1", -32600)},
		{"a method of 2048 bytes in escapes", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat(`\u0041`, 2048) + `"}`, fault("1", -32601)},
		{"a method of 2049 bytes in escapes", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat(`\u0041`, 2049) + `"}`, fault("1", -32600)},
		{"a method with escapes", `{"jsonrpc":"2.0","id":1,"method":"toy\u005fone"}`, result("1", "1")},

		{"a duplicate id is no id", `{"jsonrpc":"2.0","id":1,"id":1,"method":"toy_one"}`, fault("null", -32600)},
		{"a duplicate id hidden in escapes", `{"jsonrpc":"2.0","id":1,"\u0069d":1,"method":"toy_one"}`, fault("null", -32600)},
		{"duplicate params keep the id", `{"jsonrpc":"2.0","id":1,"params":[],"method":"toy_one","params":[]}`, fault("1", -32600)},
		{"a duplicate method", `{"jsonrpc":"2.0","id":1,"method":"toy_one","method":"toy_one"}`, fault("1", -32600)},
		{"a duplicate version", `{"jsonrpc":"2.0","id":1,"jsonrpc":"2.0","method":"toy_one"}`, fault("1", -32600)},
		{"unknown members are ignored, also twice", `{"jsonrpc":"2.0","x":1,"id":1,"x":{},"method":"toy_one"}`, result("1", "1")},
		{"members are case-sensitive", `{"jsonrpc":"2.0","id":1,"Id":2,"ID":3,"method":"toy_one","Method":"foo"}`, result("1", "1")},

		{"an error has its data and no result", call("1", "miss", "[]"), `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"data":{"reason":"future"}}}`},
		{"a result is never nothing", call("1", "nothing", "[]"), fault("1", -32603)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := withoutMessages(t, jsonrpc.Answer(new(toy), jsonrpc.Options{}, tt.body)); got != tt.want {
				t.Errorf("got %.300s, want %.300s", got, tt.want)
			}
		})
	}
}

func TestMessagesSayWhy(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"a method is named and escaped", `{"jsonrpc":"2.0","id":1,"method":"<b>\u0000\"\ud800"}`,
			`"the method <b>\u0000\"` + "\ufffd" + ` does not exist/is not available"`},
		{"params of the wrong shape", call("1", "one", "7"), `"non-array args"`},
		{"text of the handler is escaped", call("1", "miss", "[]"), `"a \"miss\"\u000a"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := jsonrpc.Answer(new(toy), jsonrpc.Options{}, tt.body); !strings.Contains(got, `"message":`+tt.want) {
				t.Errorf("got %s, want message %s", got, tt.want)
			}
		})
	}
}

func TestMalformedBodies(t *testing.T) {
	nested := func(n int) string {
		return call("1", "echo", strings.Repeat("[", n-1)+strings.Repeat("]", n-1))
	}
	tests := []struct{ name, body, want string }{
		{"empty", "", fault("null", -32700)},
		{"space only", " \n ", fault("null", -32700)},
		{"an unclosed object", "{", fault("null", -32700)},
		{"two values", call("1", "one", "[]") + call("2", "one", "[]"), fault("null", -32700)},
		{"a trailing NUL", call("1", "one", "[]") + "\x00", fault("null", -32700)},
		{"a byte order mark", "\ufeff" + call("1", "one", "[]"), fault("null", -32700)},
		{"a trailing comma", `{"jsonrpc":"2.0","id":1,"method":"toy_one",}`, fault("null", -32700)},
		{"not UTF-8 in an ignored member", `{"jsonrpc":"2.0","id":1,"method":"toy_one","x":"` + "\xff" + `"}`, fault("null", -32700)},
		{"a surrogate encoded in UTF-8", call("\"\xed\xa0\x80\"", "one", "[]"), fault("null", -32700)},
		{"a control character in a string", call("\"\n\"", "one", "[]"), fault("null", -32700)},
		{"a leading zero", call("01", "one", "[]"), fault("null", -32700)},
		{"NaN", call("NaN", "one", "[]"), fault("null", -32700)},
		{"depth 128", nested(128), result("1", strings.Repeat("[", 126)+strings.Repeat("]", 126))},
		{"depth 129", nested(129), fault("null", -32700)},
		{"depth 129 in objects", `{"x":` + strings.Repeat(`{"x":`, 127) + "{}" + strings.Repeat("}", 128), fault("null", -32700)},
		{"a scalar is JSON but no request", "1", fault("null", -32600)},
		{"null is JSON but no request", "null", fault("null", -32600)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := withoutMessages(t, jsonrpc.Answer(new(toy), jsonrpc.Options{}, tt.body)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestBatch(t *testing.T) {
	one := call("1", "one", "[]")
	note := `{"jsonrpc":"2.0","method":"toy_one"}`
	array := func(entries ...string) string { return "[" + strings.Join(entries, ",") + "]" }
	limited := jsonrpc.Options{MaxBatch: 3, MaxResponse: 3000}
	bad := fault("null", -32600)
	tests := []struct{ name, body, want string }{
		{"answers come in order", array(one, call("2", "echo", "[7]")), array(result("1", "1"), result("2", "7"))},
		{"an empty batch is one error", "[ ]", bad},
		{"each bad entry has its own error", "[1,null,[]]", array(bad, bad, bad)},
		{"a nested batch is a bad entry", array(array(one)), array(bad)},
		{"bad entries do not disturb the rest", array("1", one, `{"id":4}`), array(bad, result("1", "1"), fault("4", -32600))},
		{"notifications are left out", array(note, one, note), array(result("1", "1"))},
		{"notifications only are not answered", array(note, note), ""},
		{"a panic costs one entry", array(call("1", "panic", "[]"), call("2", "one", "[]")), array(fault("1", -32603), result("2", "1"))},
		{"a malformed entry spoils the whole", array(one, "{"), fault("null", -32700)},
		{"as many as allowed", array(one, one, one), array(result("1", "1"), result("1", "1"), result("1", "1"))},
		{"one too many", array(one, one, one, one), array(fault("1", -32600))},
		{"too many, the first has no id", array(note, "7", call(`"x"`, "one", "[]"), one), array(fault(`"x"`, -32600))},
		{"too many, the first id is beyond the limit", array(note, note, note, note, call("8", "one", "[]")), array(fault("8", -32600))},
		{"too many, only a call lends its id", array(`{"id":3}`, one, one, one), array(fault("1", -32600))},
		{"too many, none has an id", array(note, note, note, note), array(fault("null", -32600))},
		{"too many and malformed", array(one, one, one, one, "}"), fault("null", -32700)},
		{"the rest of a too long answer", array(one, call("2", "kilobytes", "[4]"), call("3", "panic", "[]")),
			array(result("1", "1"), fault("2", -32003), fault("3", -32003))},
		{"a too long answer alone", call("2", "kilobytes", "[4]"), fault("2", -32003)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := withoutMessages(t, jsonrpc.Answer(new(toy), limited, tt.body)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestOneSessionPerBody(t *testing.T) {
	one := call("1", "one", "[]")
	tests := []struct {
		name, body string
		want       int
	}{
		{"a call", one, 1},
		{"a batch (P1)", "[" + one + "," + one + "]", 1},
		{"a notification", `{"jsonrpc":"2.0","method":"toy_one"}`, 0},
		{"a bad request", `{"id":1}`, 0},
		{"nonsense", `{`, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := &toy{began: make(chan struct{}, 10)}
			jsonrpc.Answer(h, jsonrpc.Options{}, tt.body)
			if got := len(h.began); got != tt.want {
				t.Errorf("got %d sessions, want %d", got, tt.want)
			}
		})
	}
}
