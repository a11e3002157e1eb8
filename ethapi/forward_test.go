// SPDX-License-Identifier: Apache-2.0

package ethapi_test

import (
	"context"
	"fmt"
	"testing"

	"glimpse/chain"
	"glimpse/ethapi"
	"glimpse/jsonrpc"
)

// An other node answers every call with what it was asked, or as it is told.
type other struct {
	asked  []string
	answer string
	err    error
}

func (o *other) Forward(_ context.Context, method string, params []byte) ([]byte, error) {
	o.asked = append(o.asked, method+string(params))
	return []byte(o.answer), o.err
}

func TestForwarding(t *testing.T) {
	tests := []struct {
		name, method, params string
		answer               string
		err                  error
		partial              bool
		asked                bool
		want                 string // the result, or the code of the error
	}{
		{"a method that is not served", "eth_getProof", `["0x1",[],{"a":1}]`, `{"x":1}`, nil, false, true, `{"x":1}`},
		{"null is an answer", "eth_getWork", `[]`, `null`, nil, false, true, `null`},
		{"an error of the other node", "eth_getProof", `[]`, ``, &jsonrpc.Error{Code: -32000, Message: "no"}, false, true, "-32000"},
		{"another node that is away", "eth_getProof", `[]`, ``, fmt.Errorf("x: %w", chain.ErrUnavailable), false, true, "-32603"},
		{"a method that is served", "eth_chainId", `[]`, `"0x1"`, nil, false, false, `"0x7a69"`},
		{"debug", "debug_traceBlock", `[]`, `1`, nil, false, false, "-32601"},
		{"admin", "admin_peers", `[]`, `1`, nil, false, false, "-32601"},
		{"personal", "personal_sign", `[]`, `1`, nil, false, false, "-32601"},
		{"engine", "engine_newPayloadV4", `[]`, `1`, nil, false, false, "-32601"},
		{"a subscription", "eth_subscribe", `["newHeads"]`, `1`, nil, false, false, "-32601"},
		{"a block before the first, where all is here", "eth_getBlockByHash", `["` + unknownHash + `",false]`, `{"y":1}`, nil, false, false, `null`},
		{"a block before the first", "eth_getBlockByHash", `["` + unknownHash + `",false]`, `{"y":1}`, nil, true, true, `{"y":1}`},
		{"a transaction from before", "eth_getTransactionReceipt", `["` + unknownHash + `"]`, `{"blockNumber":"0x1"}`, nil, true, true, `{"blockNumber":"0x1"}`},
		{"a transaction of a block that is not here yet", "eth_getTransactionReceipt", `["` + unknownHash + `"]`, `{"blockNumber":"0xffff"}`, nil, true, true, `null`},
		{"a bad parameter", "eth_getBlockByHash", `["0x1",false]`, `1`, nil, true, false, "-32602"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o, n := &other{answer: tt.answer, err: tt.err}, &notebook{}
			got, failed := callWith(t, new(fake), func(c *ethapi.Config) {
				c.Forwarder, c.Partial, c.Observer = o, tt.partial, n
			}, tt.method, tt.params)
			if failed != nil {
				got = fmt.Sprint(failed.Code)
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if asked := len(o.asked) > 0; asked != tt.asked || asked && o.asked[0] != tt.method+tt.params {
				t.Errorf("the other node was asked %q", o.asked)
			}
			if n.failures > 0 {
				t.Error("it counts as a failure of the store")
			}
		})
	}
}

const unknownHash = "0xff000000000000000000000000000000000000000000000000000000000000ff"
