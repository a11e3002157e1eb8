// SPDX-License-Identifier: Apache-2.0

package ethapi_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
)

// members decodes a result and returns some of its members, "a.b" for one
// inside another; a number in the path picks an element of a list.
func members(t *testing.T, result, paths string) string {
	t.Helper()
	var doc any
	if err := json.Unmarshal([]byte(result), &doc); err != nil {
		t.Fatal(err)
	}
	var found []string
	for path := range strings.FieldsSeq(paths) {
		at := doc
		for name := range strings.SplitSeq(path, ".") {
			switch v := at.(type) {
			case map[string]any:
				at = v[name]
			case []any:
				var i int
				if _, err := fmt.Sscan(name, &i); err != nil || i >= len(v) {
					t.Fatalf("no %s in %s", path, result)
				}
				at = v[i]
			default:
				t.Fatalf("no %s in %s", path, result)
			}
		}
		found = append(found, fmt.Sprint(at))
	}
	return strings.Join(found, " ")
}

func TestTransactionsAndReceipts(t *testing.T) {
	hash3 := fmt.Sprintf(`"0x%064x"`, 3)
	sealed4 := fakeHeader(4).Hash().Hex()
	second := fakeTransactions(4)[1].Hash().Hex()
	tests := []struct {
		name, method, params, paths, want string
	}{
		{"transaction by hash", "eth_getTransactionByHash", transactionParams(4, 1),
			"hash blockHash blockNumber transactionIndex gasPrice blockTimestamp", second + " " + sealed4 + " 0x4 0x1 0x579 0x30"},
		{"transaction by number and index", "eth_getTransactionByBlockNumberAndIndex", `["0x4","0x1"]`, "hash blockHash", second + " " + sealed4},
		{"transaction by hash and index", "eth_getTransactionByBlockHashAndIndex", `[` + hash3 + `,"0x0"]`, "blockNumber nonce", "0x3 0x6"},
		{"receipt", "eth_getTransactionReceipt", transactionParams(4, 1),
			"transactionHash blockHash transactionIndex gasUsed cumulativeGasUsed effectiveGasPrice status to contractAddress type",
			second + " " + sealed4 + " 0x1 0x7530 0xea60 0x579 0x1 " + strings.ToLower(emitter.Hex()) + " <nil> 0x2"},
		{"logs of a receipt count on from those before it", "eth_getTransactionReceipt", transactionParams(4, 1),
			"logs.0.logIndex logs.1.logIndex logs.0.transactionIndex logs.0.blockNumber logs.0.removed", "0x2 0x3 0x1 0x4 false"},
		{"receipts of a block", "eth_getBlockReceipts", `["0x4"]`, "0.transactionIndex 1.transactionHash", "0x0 " + second},
		{"logs by topic", "eth_getLogs", `[{"fromBlock":"0x1","topics":[null,"` + topic(4).Hex() + `"]}]`, "0.transactionIndex 1.transactionIndex", "0x0 0x1"},
		{"fee history", "eth_feeHistory", `["0x2","0x4",[10,90]]`,
			"oldestBlock baseFeePerGas.2 gasUsedRatio.1 reward.0.0 reward.0.1 reward.1.1", "0x3 0x3e8 0.5 0x12c 0x12d 0x191"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := call(t, new(fake), tt.method, tt.params)
			if err != nil {
				t.Fatal(err)
			}
			if got := members(t, got, tt.paths); got != tt.want {
				t.Errorf("%s%s\n got %s\nwant %s", tt.method, tt.params, got, tt.want)
			}
		})
	}
}

func TestPlainAnswersAboutBlocks(t *testing.T) {
	unknown := `"0xff00000000000000000000000000000000000000000000000000000000000003"`
	tests := []struct {
		name, method, params, want string
	}{
		{"count by number", "eth_getBlockTransactionCountByNumber", `["latest"]`, `"0x2"`},
		{"count of genesis", "eth_getBlockTransactionCountByNumber", `["0x0"]`, `"0x0"`},
		{"count of no block", "eth_getBlockTransactionCountByNumber", `["0x99"]`, `null`},
		{"count by unknown hash", "eth_getBlockTransactionCountByHash", `[` + unknown + `]`, `null`},
		{"receipts of no block", "eth_getBlockReceipts", `["0x99"]`, `null`},
		{"receipts of genesis", "eth_getBlockReceipts", `["0x0"]`, `[]`},
		{"transaction that no block has", "eth_getTransactionByHash", `[` + unknown + `]`, `null`},
		{"receipt of a transaction that no block has", "eth_getTransactionReceipt", `[` + unknown + `]`, `null`},
		{"transaction past the end", "eth_getTransactionByBlockNumberAndIndex", `["latest","0x2"]`, `null`},
		{"transaction far past the end", "eth_getTransactionByBlockNumberAndIndex", `["latest","0xffffffffffffffff"]`, `null`},
		{"transaction of no block", "eth_getTransactionByBlockHashAndIndex", `[` + unknown + `,"0x0"]`, `null`},
		{"no logs", "eth_getLogs", `[{"fromBlock":"0x5"}]`, `[]`},
		{"fee history of no blocks", "eth_feeHistory", `["0x0","latest"]`, `{"oldestBlock":"0x0","gasUsedRatio":null}`},
		{"next base fee", "eth_baseFee", `[]`, `"0x3e8"`},
		{"blob fee before blobs", "eth_blobBaseFee", `[]`, `null`},
		{"tip is that of the block in the middle", "eth_maxPriorityFeePerGas", `[]`, `"0x12d"`},
		{"gas price is tip and base fee", "eth_gasPrice", `[]`, `"0x515"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := call(t, new(fake), tt.method, tt.params)
			if err != nil || got != tt.want {
				t.Errorf("%s%s: got %s, %v, want %s", tt.method, tt.params, got, err, tt.want)
			}
		})
	}
}

func TestLogsThatMatch(t *testing.T) {
	address, other := strings.ToLower(emitter.Hex()), chain.Address{1}.Hex()
	first, block4 := emitted.Hex(), topic(4).Hex()
	tests := []struct {
		name, filter string
		want         string // block.transaction of each log with topics, block.transaction- of each without
	}{
		{"all of a range", `"fromBlock":"0x1","toBlock":"0x5"`, "2.0 2.0- 2.1 2.1- 4.0 4.0- 4.1 4.1-"},
		{"one block by hash", fmt.Sprintf(`"blockHash":"0x%064x"`, 2), "2.0 2.0- 2.1 2.1-"},
		{"the ends are in it", `"fromBlock":"0x2","toBlock":"0x4","topics":[[]]`, "2.0 2.1 4.0 4.1"},
		{"an address", `"fromBlock":"0x4","address":"` + address + `","topics":["` + first + `"]`, "4.0 4.1"},
		{"one of two addresses", `"fromBlock":"0x4","address":["` + other + `","` + address + `"],"topics":["` + first + `"]`, "4.0 4.1"},
		{"an address without logs", `"fromBlock":"0x1","address":"` + other + `"`, ""},
		{"a topic in the second place", `"fromBlock":"0x1","topics":[null,"` + block4 + `"]`, "4.0 4.1"},
		{"a topic in the wrong place", `"fromBlock":"0x1","topics":["` + block4 + `"]`, ""},
		{"two topics to choose from", `"fromBlock":"0x1","topics":[[],["` + block4 + `","` + topic(2).Hex() + `"],"` + topic(1).Hex() + `"]`, "2.1 4.1"},
		{"null among the choices is any", `"fromBlock":"0x4","topics":[["` + block4 + `",null]]`, "4.0 4.1"},
		{"more topics than a log has", `"fromBlock":"0x1","topics":[null,null,null,null]`, ""},
		{"unknown members are left alone", `"fromBlock":"0x4","topics":[null],"limit":5`, "4.0 4.1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			result, failed := call(t, new(fake), "eth_getLogs", `[{`+tt.filter+`}]`)
			if failed != nil {
				t.Fatal(failed)
			}
			var logs []types.Log
			if err := json.Unmarshal([]byte(result), &logs); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, l := range logs {
				text := fmt.Sprintf("%d.%d", l.BlockNumber, l.TxIndex)
				if len(l.Topics) == 0 {
					text += "-"
				}
				got = append(got, text)
			}
			if want := strings.Fields(tt.want); !reflect.DeepEqual(got, want) && len(got)+len(want) > 0 {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestBadQuestionsAboutBlocks(t *testing.T) {
	many := strings.Repeat(`"`+contract+`",`, 1000) + `"` + contract + `"`
	tests := []struct {
		name, method, params string
		code                 int
		message              string
	}{
		{"index with a leading zero", "eth_getTransactionByBlockNumberAndIndex", `["latest","0x00"]`, -32602, "invalid argument 1 (transaction index): want a hex number"},
		{"index of too many bits", "eth_getTransactionByBlockNumberAndIndex", `["latest","0x10000000000000000"]`, -32602, "more than 64 bits"},
		{"index a number", "eth_getTransactionByBlockNumberAndIndex", `["latest",0]`, -32602, "want a hex number"},
		{"short transaction hash", "eth_getTransactionByHash", `["0x12"]`, -32602, "invalid argument 0 (transaction hash): want 0x and 64 hex digits"},
		{"logs beyond the head", "eth_getLogs", `[{"fromBlock":"0x1","toBlock":"0x6"}]`, -32602, "beyond current head"},
		{"logs from beyond the head", "eth_getLogs", `[{"fromBlock":"0x6"}]`, -32602, "beyond current head"},
		{"logs backwards", "eth_getLogs", `[{"fromBlock":"0x4","toBlock":"0x3"}]`, -32602, "invalid block range"},
		{"logs by hash and range", "eth_getLogs", fmt.Sprintf(`[{"blockHash":"0x%064x","toBlock":"0x3"}]`, 2), -32602, "choose one or the other"},
		{"logs of an unknown hash", "eth_getLogs", `[{"blockHash":"0xff00000000000000000000000000000000000000000000000000000000000003"}]`, -32000, "header for hash not found"},
		{"logs of a block that is not known yet", "eth_getLogs", `[{"fromBlock":"safe"}]`, -39001, "none is known yet"},
		{"logs of five topics", "eth_getLogs", `[{"topics":[null,null,null,null,null]}]`, -32602, "want at most 4 elements"},
		{"logs of too many addresses", "eth_getLogs", `[{"address":[` + many + `]}]`, -32602, "want at most 1000 elements"},
		{"logs of a bad topic", "eth_getLogs", `[{"topics":["0x12"]}]`, -32602, `invalid member "topics": element 0: want 0x and 64`},
		{"logs of a bad address", "eth_getLogs", `[{"address":["0x12"]}]`, -32602, `invalid member "address": element 0: want 0x and 40`},
		{"logs of a block that is a number", "eth_getLogs", `[{"fromBlock":1}]`, -32602, `invalid member "fromBlock"`},
		{"fees beyond the head", "eth_feeHistory", `["0x1","0x99"]`, -32000, "header not found"},
		{"fees of a percentile above 100", "eth_feeHistory", `["0x1","latest",[101]]`, -32602, "want 0 to 100"},
		{"fees of percentiles that fall", "eth_feeHistory", `["0x1","latest",[50,40]]`, -32602, "want them to ascend"},
		{"fees of a percentile in words", "eth_feeHistory", `["0x1","latest",["half"]]`, -32602, "want a number"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := call(t, new(fake), tt.method, tt.params)
			if err == nil {
				t.Fatalf("got %s, want code %d", got, tt.code)
			}
			if err.Code != tt.code || !strings.Contains(err.Message, tt.message) {
				t.Errorf("got %d %q\nwant %d %q", err.Code, err.Message, tt.code, tt.message)
			}
		})
	}
}

func TestLogsAreBounded(t *testing.T) {
	address := `"address":"` + emitter.Hex() + `"`
	tests := []struct {
		name   string
		fake   fake
		filter string
		want   string // empty where it is answered
	}{
		{"as many blocks as allowed", fake{height: 10_005}, `"fromBlock":"0x6","address":"` + contract + `"`, ""},
		{"one block more", fake{height: 10_005}, `"fromBlock":"0x5","address":"` + contract + `"`, "block range of 10001 blocks, want at most 10000"},
		{"as many logs as allowed", fake{logs: 2498}, address + `,"fromBlock":"0x1"`, ""},
		{"more logs", fake{logs: 2499}, address + `,"fromBlock":"0x1"`, "up to block 4: ask for fewer blocks"},
		{"more data", fake{logs: 2498, data: 3400}, address + `,"fromBlock":"0x4"`, "8388608 bytes of data"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := call(t, &tt.fake, "eth_getLogs", `[{`+tt.filter+`}]`)
			if tt.want == "" && err != nil {
				t.Errorf("got %v, want an answer", err)
			}
			if tt.want != "" && (err == nil || err.Code != -32602 || !strings.Contains(err.Message, tt.want)) {
				t.Errorf("got %v, want -32602 %q", err, tt.want)
			}
		})
	}
}

func TestFeeHistoryIsCut(t *testing.T) {
	got, err := call(t, &fake{height: 2000}, "eth_feeHistory", `["0xffff","latest"]`)
	if err != nil {
		t.Fatal(err)
	}
	if got := members(t, got, "oldestBlock gasUsedRatio.1023 baseFeePerGas.1024"); got != "0x3d1 0 0x36b" {
		t.Errorf("got %s, want the last 1024 of 2000 blocks", got)
	}
}
