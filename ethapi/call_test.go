// SPDX-License-Identifier: Apache-2.0

package ethapi_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum"

	"glimpse/chain"
	"glimpse/ethapi"
	"glimpse/jsonrpc"
)

func TestCallsAnswer(t *testing.T) {
	for method, want := range map[string]string{
		"eth_call":             `"0xab"`,
		"eth_estimateGas":      `"0x5208"`,
		"eth_createAccessList": `{"accessList":[],"error":"out of gas","gasUsed":"0x5208"}`,
	} {
		if got, err := call(t, new(fake), method, `[{},"0x3"]`); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", method, got, err, want)
		}
	}
}

// What the EVM is given for a call object.
func TestCallObjectIsRead(t *testing.T) {
	f := new(fake)
	params := `[{"from":"` + contract + `","to":"` + contract + `","gas":"0x10","maxFeePerGas":"0x11","maxPriorityFeePerGas":"0x12",
		"value":"0x13","nonce":"0x14","data":"0xabcd","input":"0xabcd","chainId":"0x7a69","type":"0x2","gasPrice":null,
		"accessList":[{"address":"` + contract + `","storageKeys":[]}],"made":"up"},"0x3"]`
	if _, err := call(t, f, "eth_call", params); err != nil {
		t.Fatal(err)
	}
	m := f.evm.message
	got := fmt.Sprint(strings.ToLower(m.From.Hex()), strings.ToLower(m.To.Hex()), m.Gas, m.GasPrice, m.GasFeeCap, m.GasTipCap, m.Value, m.Data, len(m.AccessList))
	want := fmt.Sprint(contract, contract, 16, nil, 17, 18, 19, []byte{0xab, 0xcd}, 1)
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if n := f.evm.scene.Header.Number.Uint64(); n != 3 {
		t.Errorf("block: got %d, want 3", n)
	}
	if _, err := call(t, f, "eth_call", `[{}]`); err != nil || !reflect.DeepEqual(f.evm.message, ethereum.CallMsg{}) {
		t.Errorf("empty object: got %+v, %v, want nothing set", f.evm.message, err)
	}
}

func TestCallObjectIsRefused(t *testing.T) {
	tests := []struct{ name, params, message string }{
		{"not an object", `["0x"]`, "invalid argument 0 (transaction): want an object"},
		{"missing", `[]`, "missing value for required argument 0"},
		{"short sender", `[{"from":"0x12"}]`, `invalid member "from": want 0x and 40 hex digits`},
		{"gas a number", `[{"gas":21000}]`, `invalid member "gas": want a hex number`},
		{"gas of 65 bits", `[{"gas":"0x10000000000000000"}]`, `invalid member "gas": number of more than 64 bits`},
		{"value with a leading zero", `[{"value":"0x01"}]`, `invalid member "value": want a hex number`},
		{"value of no digits", `[{"value":"0x"}]`, `invalid member "value": want a hex number`},
		{"value below zero", `[{"value":"0x-1"}]`, `invalid member "value": want a hex number`},
		{"value of 257 bits", `[{"value":"0x1` + strings.Repeat("0", 64) + `"}]`, "more than 256 bits"},
		{"odd data", `[{"data":"0xabc"}]`, `invalid member "data": want 0x and an even number`},
		{"data and input that differ", `[{"data":"0xab","input":"0xcd"}]`, `both "data" and "input" are set and not equal`},
		{"empty data and input", `[{"data":"0x","input":"0xcd"}]`, `both "data" and "input" are set and not equal`},
		{"another chain", `[{"chainId":"0x1"}]`, "chainId does not match node's (have=1, want=31337)"},
		{"bad access list", `[{"accessList":[{"address":"0x1"}]}]`, `invalid member "accessList": malformed`},
		{"a member twice", `[{"gas":"0x1","gas":"0x2"}]`, "duplicate member"},
		{"unknown state override", `[{},"latest",{"` + contract + `":{"color":"0x1"}}]`, `state override "color" is not supported`},
		{"state and diff", `[{},"latest",{"` + contract + `":{"state":{},"stateDiff":{}}}]`, "has both 'state' and 'stateDiff'"},
		{"state override of a short slot", `[{},"latest",{"` + contract + `":{"state":{"0x1":"0x1"}}}]`, "want 0x and 64 hex digits"},
		{"state override of a precompile", `[{},"latest",{"0x0000000000000000000000000000000000000004":{"balance":"0x1"}}]`, "precompiled contract"},
		{"state override of one address in two cases", `[{},"latest",{"0x00000000000000000000000000000000000000c0":{},"0x00000000000000000000000000000000000000C0":{}}]`, "comes twice"},
		{"unknown block override", `[{},"latest",{},{"withdrawals":[]}]`, `block override "withdrawals" is not supported`},
		{"block override of a large number", `[{},"latest",{},{"number":"0x10000000000000000"}]`, "more than 64 bits"},
		{"too many", `[{},"latest",{},{},{}]`, "too many arguments, want at most 4"},
		{"a bad override wins over an unknown block", `[{},"0x99",{"0x12":{}}]`, "invalid address"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := call(t, new(fake), "eth_call", tt.params)
			if err == nil {
				t.Fatalf("got %s, want an error", got)
			}
			if err.Code != -32602 || !strings.Contains(err.Message, tt.message) {
				t.Errorf("got %d %q, want -32602 %q", err.Code, err.Message, tt.message)
			}
		})
	}
}

func TestFailedCallsExplainThemselves(t *testing.T) {
	tests := []struct {
		name    string
		err     error
		code    int
		message string
		data    string
	}{
		{"revert", &ethapi.CallError{Message: "execution reverted: no", Reverted: true, Revert: []byte{1, 2}}, 3, "execution reverted: no", `"0x0102"`},
		{"revert without data", &ethapi.CallError{Message: "execution reverted", Reverted: true}, 3, "execution reverted", `"0x"`},
		{"other failure", &ethapi.CallError{Message: "out of gas"}, -32000, "out of gas", ""},
		{"too slow", fmt.Errorf("aborted: %w", context.DeadlineExceeded), -32000, "execution aborted (timeout = 5s)", ""},
		{"failed read", errDisk, -32603, "internal error", ""},
	}
	for _, tt := range tests {
		for _, method := range []string{"eth_call", "eth_estimateGas", "eth_createAccessList"} {
			t.Run(tt.name+"/"+method, func(t *testing.T) {
				got, err := call(t, &fake{evm: fakeEVM{err: tt.err}}, method, `[{}]`)
				if err == nil {
					t.Fatalf("got %s, want an error", got)
				}
				if err.Code != tt.code || err.Message != tt.message || string(err.Data) != tt.data {
					t.Errorf("got %d %q %s, want %d %q %s", err.Code, err.Message, err.Data, tt.code, tt.message, tt.data)
				}
			})
		}
	}
}

func TestCallsHaveADeadline(t *testing.T) {
	for _, method := range []string{"eth_call", "eth_estimateGas", "eth_createAccessList"} {
		f := new(fake)
		f.evm.use = func(ctx context.Context, _ ethapi.Scene) error {
			if _, ok := ctx.Deadline(); !ok {
				return errors.New("no deadline")
			}
			return nil
		}
		if _, err := call(t, f, method, `[{}]`); err != nil {
			t.Errorf("%s: got %v, want a context with a deadline", method, err)
		}
	}
}

func TestCallsOnPrunedAndUnknownBlocks(t *testing.T) {
	for params, code := range map[string]int{`[{},"0x1"]`: 4444, `[{},"0x99"]`: -32000, `[{},"safe"]`: -39001} {
		if got, err := call(t, new(fake), "eth_call", params); err == nil || err.Code != code {
			t.Errorf("eth_call%s: got %s, %v, want %d", params, got, err, code)
		}
	}
}

func TestOverridesReplaceWhatTheyName(t *testing.T) {
	slot1, slot2 := chain.Slot{31: 1}, chain.Slot{31: 2}
	override := func(body string) string { return `[{},"0x3",{"` + contract + `":{` + body + `}}]` }
	one := `{"` + slot1.Hex() + `":"` + chain.Value{31: 9}.Hex() + `"}`
	tests := []struct {
		name, params string
		want         string // nonce, balance, code, slot 1, slot 2
	}{
		{"nothing", `[{},"0x3"]`, "3 1000 6001 301 302"},
		{"nonce and balance", override(`"nonce":"0x7","balance":"0x8"`), "7 8 6001 301 302"},
		{"code", override(`"code":"0xfe"`), "3 1000 fe 301 302"},
		{"no code", override(`"code":"0x"`), "3 1000  301 302"},
		{"one slot", override(`"stateDiff":` + one), "3 1000 6001 9 302"},
		{"all slots", override(`"state":` + one), "3 1000 6001 9 0"},
		{"all slots gone", override(`"state":{}`), "3 1000 6001 0 0"},
		{"members that are null", override(`"code":null,"balance":null`), "3 1000 6001 301 302"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, got := new(fake), ""
			f.evm.use = func(_ context.Context, s ethapi.Scene) error {
				addr := chain.Address{19: 0xc0}
				account, err1 := s.Base.Account(addr)
				code, err2 := s.Base.Code(account.CodeHash)
				if account.CodeHash == (chain.Hash{}) {
					code, err2 = nil, nil // the fake has no code but its own
				}
				a, err3 := s.Base.Slot(addr, slot1)
				b, err4 := s.Base.Slot(addr, slot2)
				short := func(v chain.Value) string { return fmt.Sprintf("%d", 100*int(v[0])+int(v[31])) }
				got = fmt.Sprintf("%d %s %x %s %s", account.Nonce, account.Balance.Dec(), code, short(a), short(b))
				return errors.Join(err1, err2, err3, err4)
			}
			if _, err := call(t, f, "eth_call", tt.params); err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestBlockOverridesAndAncestors(t *testing.T) {
	f := new(fake)
	f.evm.use = func(_ context.Context, s ethapi.Scene) error {
		for n, want := range map[chain.Number]chain.Hash{
			2: fakeHeader(2).Hash(), 3: fakeHeader(4).ParentHash, 4: {}, 50: {},
		} {
			if got, err := s.Ancestor(n); got != want || err != nil {
				t.Errorf("hash of block %d: got %s, %v, want %s", n, got, err, want)
			}
		}
		return nil
	}
	params := `[{},"0x4",null,{"number":"0x64","time":"0x65","gasLimit":"0x66","feeRecipient":"` + contract + `",
		"prevRandao":"` + topic(7).Hex() + `","baseFeePerGas":"0x67","blobBaseFee":"0x68","difficulty":"0x69"}]`
	if _, err := call(t, f, "eth_call", params); err != nil {
		t.Fatal(err)
	}
	h := f.evm.scene.Header
	got := fmt.Sprint(h.Number, h.Time, h.GasLimit, h.Coinbase[19], h.MixDigest[31], h.BaseFee, f.evm.scene.BlobBaseFee, h.Difficulty)
	if want := fmt.Sprint(100, 101, 102, 0xc0, 7, 103, 104, 0); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A search through many blocks ends with its request.
func TestSearchesEndWithTheirContext(t *testing.T) {
	for method, params := range map[string]string{
		"eth_getLogs":    `[{"fromBlock":"0x1"}]`,
		"eth_feeHistory": `["0x5","latest",[50]]`,
	} {
		ctx, cancel := context.WithCancel(t.Context())
		s := newAPI(new(fake), nil).Begin(ctx, nil)
		cancel()
		values, _ := jsonrpc.Value(params).Elements()
		if out, err := s.Call(ctx, nil, []byte(method), values); err == nil {
			t.Errorf("%s after its context ended: got %s, want an error", method, out)
		}
		s.End()
	}
}
