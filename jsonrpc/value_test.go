// SPDX-License-Identifier: Apache-2.0

package jsonrpc_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"glimpse/jsonrpc"
)

func TestValuesInOrder(t *testing.T) {
	vs, ok := jsonrpc.Value(` [ "a\"]" , [1,{"b":"}"}] ,-1.5e3,{ }, null,true ]`[1:]).Elements()
	if !ok {
		t.Fatal("got no array, want one")
	}
	for _, want := range []string{`"a\"]"`, `[1,{"b":"}"}]`, "-1.5e3", "{ }", "null", "true"} {
		if got, ok := vs.Next(); !ok || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, ok, want)
		}
	}
	for range 2 {
		if got, ok := vs.Next(); ok {
			t.Errorf("got %q after the end, want nothing", got)
		}
	}
}

func TestValueKinds(t *testing.T) {
	tests := []struct {
		value                             string
		null, object, array, text, truthy bool
		isBool                            bool
	}{
		{value: "null", null: true},
		{value: "{}", object: true},
		{value: "[]", array: true},
		{value: `""`, text: true},
		{value: "true", isBool: true, truthy: true},
		{value: "false", isBool: true},
		{value: "-1"},
		{value: ""},
	}
	for _, tt := range tests {
		t.Run(tt.value, func(t *testing.T) {
			v := jsonrpc.Value(tt.value)
			_, array := v.Elements()
			_, text := v.Text()
			truthy, isBool := v.Bool()
			got := fmt.Sprint(v.IsNull(), v.IsObject(), array, text, truthy, isBool)
			want := fmt.Sprint(tt.null, tt.object, tt.array, tt.text, tt.truthy, tt.isBool)
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestMembers(t *testing.T) {
	many := make([]string, 20)
	for i := range many {
		many[i] = fmt.Sprintf(`"k%d":%d`, i, i)
	}
	tests := []struct {
		name, value, want string
		wrong             bool
	}{
		{"in order and decoded", `{ "a" : 1 , "\u0062":{"a":[]}}`, `a=1 b={"a":[]} `, false},
		{"none", `{ }`, "", false},
		{"not an object", `[]`, "", true},
		{"a name twice", `{"a":1,"b":2,"a":3}`, "a=1 b=2 ", true},
		{"a name twice, once in escapes", `{"a":1,"\u0061":2}`, "a=1 ", true},
		{"an early name again among many", "{" + strings.Join(many, ",") + `,"k1":0}`, "", true},
		{"a late name again among many", "{" + strings.Join(many, ",") + `,"k15":0}`, "", true},
		{"many different names", "{" + strings.Join(many, ",") + `}`, "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			err := jsonrpc.Value(tt.value).Members(func(name []byte, v jsonrpc.Value) *jsonrpc.Error {
				got += fmt.Sprintf("%s=%s ", name, v)
				return nil
			})
			if (err != nil) != tt.wrong || err != nil && err.Code != jsonrpc.CodeInvalidParams {
				t.Errorf("got error %v, want one: %v", err, tt.wrong)
			}
			if tt.want != "" && got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestMembersEndsWithTheVisitorsError(t *testing.T) {
	want := jsonrpc.InvalidParams("enough")
	visits := 0
	got := jsonrpc.Value(`{"a":1,"b":2}`).Members(func([]byte, jsonrpc.Value) *jsonrpc.Error {
		visits++
		return want
	})
	if got != want || visits != 1 {
		t.Errorf("got %v after %d visits, want %v after 1", got, visits, want)
	}
}

// FuzzText compares the decoding of strings with encoding/json.
func FuzzText(f *testing.F) {
	for _, seed := range []string{`""`, `"plain"`, `"\u0041\n\/\"\\"`, `"\ud83d\ude00"`, `"\ud800"`, `"\ud800\u0041"`, `"\ude00\ud83d"`, `"\ud800\ud83d\ude00"`, `"é"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var want string
		if !jsonrpc.Valid(data) || data[0] != '"' || data[len(data)-1] != '"' || json.Unmarshal(data, &want) != nil {
			return
		}
		got, ok := jsonrpc.Value(data).Text()
		if !ok || string(got) != want {
			t.Errorf("Text(%q) = %q, %v, want %q", data, got, ok, want)
		}
		var again string
		if err := json.Unmarshal(jsonrpc.AppendString(nil, string(got)), &again); err != nil || again != want {
			t.Errorf("round trip of %q gives %q, %v", want, again, err)
		}
	})
}
