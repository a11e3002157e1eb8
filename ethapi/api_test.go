// SPDX-License-Identifier: Apache-2.0

package ethapi_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"glimpse/ethapi"
	"glimpse/jsonrpc"
)

// word writes n as the 32 bytes that slot n of block b holds in the fake.
func word(b, n int) string { return fmt.Sprintf(`"0x%02x%062x"`, b, n) }

func TestResults(t *testing.T) {
	const hash3 = `"0x0000000000000000000000000000000000000000000000000000000000000003"`
	tests := []struct {
		name, method, params, want string
	}{
		{"slot at latest", "eth_getStorageAt", `["` + contract + `","0x7","latest"]`, word(5, 7)},
		{"slot, block omitted", "eth_getStorageAt", `["` + contract + `","0x7"]`, word(5, 7)},
		{"slot, block null", "eth_getStorageAt", `["` + contract + `","0x7",null]`, word(5, 7)},
		{"slot, bare prefix is slot 0", "eth_getStorageAt", `["` + contract + `","0x"]`, word(5, 0)},
		{"slot, odd digits in capitals", "eth_getStorageAt", `["` + contract + `","0xABC"]`, word(5, 0xabc)},
		{"slot, zeros in front", "eth_getStorageAt", `["` + contract + `","0x0007"]`, word(5, 7)},
		{"slot by number", "eth_getStorageAt", `["` + contract + `","0x7","0x3"]`, word(3, 7)},
		{"slot by hash", "eth_getStorageAt", `["` + contract + `","0x7",` + hash3 + `]`, word(3, 7)},
		{"slot by EIP-1898 hash", "eth_getStorageAt", `["` + contract + `","0x7",{"blockHash":` + hash3 + `,"requireCanonical":true}]`, word(3, 7)},
		{"slot by EIP-1898 number", "eth_getStorageAt", `["` + contract + `","0x7",{"blockNumber":"0x3"}]`, word(3, 7)},
		{"slot by EIP-1898 tag", "eth_getStorageAt", `["` + contract + `","0x7",{"blockNumber":"pending","requireCanonical":null}]`, word(5, 7)},
		{"escaped strings", "eth_getStorageAt", `["` + contract + `","\u0030x7","late\u0073t"]`, word(5, 7)},
		{"code", "eth_getCode", `["` + contract + `"]`, `"0x6001"`},
		{"balance", "eth_getBalance", `["` + contract + `","0x2"]`, `"0x3e8"`},
		{"nonce", "eth_getTransactionCount", `["` + contract + `","0x4"]`, `"0x4"`},
		{"values keep the order of the request", "eth_getStorageValues",
			`[{"` + contract + `":["0x2","0x1","0x2"],"0x0000000000000000000000000000000000000000":[]},"0x3"]`,
			`{"` + contract + `":[` + word(3, 2) + "," + word(3, 1) + "," + word(3, 2) + `],"0x0000000000000000000000000000000000000000":[]}`},
		{"unknown block by number is null", "eth_getBlockByNumber", `["0x99",true]`, `null`},
		{"unknown block by hash is null", "eth_getBlockByHash", `["0xff00000000000000000000000000000000000000000000000000000000000003",true]`, `null`},
		{"height", "eth_blockNumber", `[]`, `"0x5"`},
		{"chain id", "eth_chainId", `[]`, `"0x7a69"`},
		{"network id is decimal", "net_version", `[]`, `"31337"`},
		{"version", "web3_clientVersion", `[]`, `"glimpse/test"`},
		{"syncing", "eth_syncing", `[]`, `false`},
		{"capabilities tell the pruned range", "eth_capabilities", `[]`,
			`{"head":{"number":"0x5","hash":"0x0000000000000000000000000000000000000000000000000000000000000005"},` +
				`"state":{"disabled":false,"oldestBlock":"0x2"},"blocks":{"disabled":false,"oldestBlock":"0x0"},` +
				`"tx":{"disabled":false,"oldestBlock":"0x0"},"logs":{"disabled":false,"oldestBlock":"0x0"},"receipts":{"disabled":false,"oldestBlock":"0x0"},"stateproofs":{"disabled":true}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := call(t, new(fake), tt.method, tt.params)
			if err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("%s%s\n got %s\nwant %s", tt.method, tt.params, got, tt.want)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	const future = `{"reason":"future","oldest":"0x2","latest":"0x5"}`
	many := strings.Repeat(`"0x0",`, 1024) + `"0x0"`
	tests := []struct {
		name, method, params string
		code                 int
		message, data        string
	}{
		{"no parameters", "eth_getStorageAt", `[]`, -32602, "missing value for required argument 0", ""},
		{"position missing", "eth_getStorageAt", `["` + contract + `"]`, -32602, "missing value for required argument 1", ""},
		{"null in a required place", "eth_getStorageAt", `["` + contract + `",null]`, -32602, "missing value for required argument 1", ""},
		{"too many", "eth_getStorageAt", `["` + contract + `","0x0","latest",1]`, -32602, "too many arguments, want at most 3", ""},
		{"too many for none", "eth_chainId", `[1]`, -32602, "too many arguments, want at most 0", ""},
		{"short address", "eth_getCode", `["0x12"]`, -32602, "invalid argument 0 (address): want 0x and 40 hex digits", ""},
		{"address with upper-case prefix", "eth_getCode", `["0X00000000000000000000000000000000000000c0"]`, -32602, "invalid argument 0 (address): want 0x and 40 hex digits", ""},
		{"address a number", "eth_getCode", `[12]`, -32602, "invalid argument 0 (address): want 0x and 40 hex digits", ""},
		{"position without prefix", "eth_getStorageAt", `["` + contract + `","10"]`, -32602, "invalid argument 1 (position): storage key without 0x prefix: 10", ""},
		{"position too long", "eth_getStorageAt", `["` + contract + `","0x0` + strings.Repeat("0", 64) + `"]`, -32602, "storage key too long (want at most 32 bytes)", ""},
		{"position not hex", "eth_getStorageAt", `["` + contract + `","0xasdf"]`, -32602, "invalid hex in storage key: 0xasdf", ""},
		{"bad position wins over unknown block", "eth_getStorageAt", `["` + contract + `","0xasdf","0x99"]`, -32602, "invalid hex", ""},
		{"block a number", "eth_getCode", `["` + contract + `",1]`, -32602, "invalid argument 1 (block): want a string or an object", ""},
		{"block with leading zero", "eth_getCode", `["` + contract + `","0x00"]`, -32602, "leading zero", ""},
		{"block out of range", "eth_getCode", `["` + contract + `","0xffffffffffffffff"]`, -32602, "out of range", ""},
		{"object with both", "eth_getCode", `["` + contract + `",{"blockNumber":"0x1","blockHash":"0x00"}]`, -32602, "exclude each other", ""},
		{"object with neither", "eth_getCode", `["` + contract + `",{"requireCanonical":true}]`, -32602, "want blockNumber or blockHash", ""},
		{"object with a misspelt member", "eth_getCode", `["` + contract + `",{"blockNumber":"0x1","requirecanonical":true}]`, -32602, "unknown member", ""},
		{"object with a member twice", "eth_getCode", `["` + contract + `",{"blockNumber":"0x1","blockNumber":"0x2"}]`, -32602, "duplicate member", ""},
		{"object with a number", "eth_getCode", `["` + contract + `",{"blockNumber":1}]`, -32602, "must be strings", ""},
		{"object with a hash for a number", "eth_getCode", `["` + contract + `",{"blockNumber":"0x0000000000000000000000000000000000000000000000000000000000000003"}]`, -32602, "leading zero", ""},
		{"object with a bad flag", "eth_getCode", `["` + contract + `",{"blockNumber":"0x1","requireCanonical":"yes"}]`, -32602, "requireCanonical", ""},
		{"future block", "eth_getCode", `["` + contract + `","0x99"]`, -32000, "header not found", future},
		{"future block, values", "eth_getStorageValues", `[{"` + contract + `":["0x0"]},"0x99"]`, -32000, "header not found", future},
		{"unknown hash", "eth_getBalance", `["` + contract + `","0xff00000000000000000000000000000000000000000000000000000000000003"]`, -32000, "header for hash not found", `{"reason":"unknown-hash","oldest":"0x2","latest":"0x5"}`},
		{"pruned block", "eth_getTransactionCount", `["` + contract + `","0x1"]`, 4444, "pruned", `{"reason":"pruned","oldest":"0x2","latest":"0x5"}`},
		{"safe not known yet", "eth_getCode", `["` + contract + `","safe"]`, -39001, "none is known yet", ""},
		{"safe block not known yet", "eth_getBlockByNumber", `["safe",false]`, -39001, "none is known yet", ""},
		{"values of nothing", "eth_getStorageValues", `[{}]`, -32602, "empty request", ""},
		{"values of no slots", "eth_getStorageValues", `[{"` + contract + `":[]}]`, -32602, "empty request", ""},
		{"values of too many slots", "eth_getStorageValues", `[{"` + contract + `":[` + many + `]}]`, -38026, "too many slots (max 1024)", ""},
		{"values with an address in two cases", "eth_getStorageValues", `[{"0x00000000000000000000000000000000000000c0":["0x0"],"0x00000000000000000000000000000000000000C0":["0x1"]}]`, -32602, "comes twice", ""},
		{"values with a bad address", "eth_getStorageValues", `[{"c0":["0x0"]}]`, -32602, "invalid address", ""},
		{"values with a number for a slot", "eth_getStorageValues", `[{"` + contract + `":[0]}]`, -32602, "want a string", ""},
		{"values with no list", "eth_getStorageValues", `[{"` + contract + `":"0x0"}]`, -32602, "must be an array", ""},
		{"values not an object", "eth_getStorageValues", `["x"]`, -32602, "want an object", ""},
		{"block flag missing", "eth_getBlockByNumber", `["latest"]`, -32602, "missing value for required argument 1", ""},
		{"block flag not a boolean", "eth_getBlockByNumber", `["latest","true"]`, -32602, "want true or false", ""},
		{"hash where a number belongs", "eth_getBlockByNumber", `["0x0000000000000000000000000000000000000000000000000000000000000003",false]`, -32602, "leading zero", ""},
		{"short block hash", "eth_getBlockByHash", `["0x03",false]`, -32602, "want 0x and 64 hex digits", ""},
		{"unknown method", "eth_nope", `[]`, -32601, "the method eth_nope does not exist/is not available", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := call(t, new(fake), tt.method, tt.params)
			if err == nil {
				t.Fatalf("got %s, want code %d", got, tt.code)
			}
			if err.Code != tt.code || !strings.Contains(err.Message, tt.message) || string(err.Data) != tt.data {
				t.Errorf("got %d %q %s\nwant %d %q %s", err.Code, err.Message, err.Data, tt.code, tt.message, tt.data)
			}
		})
	}
}

// P2: with the store failing anywhere below it, every method that reads answers
// an error, and not with the store's own words.
func TestFailedReadsAreErrors(t *testing.T) {
	reads := map[string]string{
		"eth_getStorageAt":        `["` + contract + `","0x0"]`,
		"eth_getCode":             `["` + contract + `"]`,
		"eth_getStorageValues":    `[{"` + contract + `":["0x0"]}]`,
		"eth_getBalance":          `["` + contract + `"]`,
		"eth_getTransactionCount": `["` + contract + `"]`,
		"eth_getBlockByNumber":    `["latest",false]`,
		"eth_getBlockByHash":      `["0x0000000000000000000000000000000000000000000000000000000000000003",false]`,

		"eth_getBlockReceipts":                    `["latest"]`,
		"eth_getBlockTransactionCountByNumber":    `["latest"]`,
		"eth_getBlockTransactionCountByHash":      `["0x0000000000000000000000000000000000000000000000000000000000000003"]`,
		"eth_getTransactionByBlockNumberAndIndex": `["latest","0x0"]`,
		"eth_getTransactionByBlockHashAndIndex":   `["0x0000000000000000000000000000000000000000000000000000000000000003","0x0"]`,
		"eth_getTransactionByHash":                transactionParams(4, 1),
		"eth_getTransactionReceipt":               transactionParams(4, 1),
		"eth_getLogs":                             `[{"fromBlock":"0x3"}]`,
		"eth_feeHistory":                          `["0x2","latest",[50]]`,
		"eth_gasPrice":                            `[]`,
		"eth_maxPriorityFeePerGas":                `[]`,
		"eth_baseFee":                             `[]`,
		"eth_blobBaseFee":                         `[]`,
		"eth_call":                                `[{},"latest"]`,
		"eth_estimateGas":                         `[{},"latest"]`,
		"eth_createAccessList":                    `[{},"latest"]`,
		"eth_config":                              `[]`,
		"glimpse_getStorageHistory":               `["` + contract + `","0x0","0x3","pending"]`,
		"glimpse_getCodeHistory":                  `["` + contract + `","0x3","latest"]`,
		"glimpse_listStorage":                     `["` + contract + `"]`,
		"glimpse_getStateDiff":                    `[]`,
		"glimpse_status":                          `[]`,
	}
	const (
		withReceipts = " eth_getBlockReceipts eth_getTransactionReceipt eth_getLogs eth_feeHistory"
		withBodies   = withReceipts + " eth_getTransactionByHash eth_gasPrice eth_maxPriorityFeePerGas" +
			" eth_getBlockTransactionCountByNumber eth_getBlockTransactionCountByHash" +
			" eth_getTransactionByBlockNumberAndIndex eth_getTransactionByBlockHashAndIndex"
		withHeaders = withBodies + " eth_baseFee eth_blobBaseFee eth_call eth_estimateGas eth_createAccessList eth_config glimpse_status"
		byHash      = "eth_getTransactionByHash eth_getTransactionReceipt"
	)
	parts := map[string]string{
		"Slot":    "eth_getStorageAt eth_getStorageValues",
		"Account": "eth_getCode eth_getBalance eth_getTransactionCount",
		"Code":    "eth_getCode",
		"Header":  "eth_getBlockByNumber eth_getBlockByHash" + withHeaders,
		"Body":    "eth_getBlockByNumber eth_getBlockByHash" + withBodies,

		"Receipts":           withReceipts,
		"number of receipts": withReceipts,
		"Hash":               "glimpse_listStorage glimpse_getStateDiff",
		"Diff":               "glimpse_getStateDiff",
		"SlotHistory":        "glimpse_getStorageHistory",
		"CodeHistory":        "glimpse_getCodeHistory",
		"Slots":              "glimpse_listStorage",
		"Transaction":        byHash,
		"place":              byHash,
		"place past the end": byHash,
	}
	for method := range reads {
		if !strings.Contains(byHash+" eth_config", method) {
			parts["Locate"] += " " + method
		}
	}
	for broken, affected := range parts {
		for _, method := range strings.Fields(affected) {
			t.Run(broken+"/"+method, func(t *testing.T) {
				got, err := call(t, &fake{broken: broken}, method, reads[method])
				if err == nil {
					t.Fatalf("got %s, want an error", got)
				}
				if err.Code != jsonrpc.CodeInternal || strings.Contains(err.Message, "secret") {
					t.Errorf("got %d %q, want %d without the cause", err.Code, err.Message, jsonrpc.CodeInternal)
				}
			})
		}
	}
}

func TestOneSnapshotForAllCallsOfASession(t *testing.T) {
	f, acquired := new(fake), 0
	api := ethapi.New(ethapi.Config{Acquire: func() ethapi.Snapshot { acquired++; return f }})
	s := api.Begin(t.Context(), nil)
	for range 3 {
		if _, err := s.Call(t.Context(), nil, []byte("eth_blockNumber"), jsonrpc.Values{}); err != nil {
			t.Fatal(err)
		}
	}
	s.End()
	if acquired != 1 || f.released != 1 {
		t.Errorf("acquired %d, released %d, want 1 and 1", acquired, f.released)
	}
}

// docs/rpc.md must name every method, header and kind of subscription, every code
// that can be answered, and every reason.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/rpc.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range ethapi.Methods() {
		if !strings.Contains(string(text), "### "+method+"\n") {
			t.Errorf("docs/rpc.md has no section for %s", method)
		}
	}
	for _, word := range ethapi.Words() {
		if !strings.Contains(string(text), "`"+word) {
			t.Errorf("docs/rpc.md does not have %s", word)
		}
	}
	for _, code := range ethapi.Codes() {
		if !strings.Contains(string(text), fmt.Sprintf("\n| %d |", code)) {
			t.Errorf("docs/rpc.md does not explain code %d", code)
		}
	}
}
