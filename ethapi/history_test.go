// SPDX-License-Identifier: Apache-2.0

package ethapi_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/ethapi"
)

// hashOf writes n as a hash of the fake.
func hashOf(n int) string { return fmt.Sprintf(`"0x%064x"`, n) }

// sealedSlot is the entry of block b in the history of slot 7.
func sealedSlot(b int) string {
	return fmt.Sprintf(`{"block":"0x%x","level":"sealed","value":%s}`, b, word(b, 7))
}

func TestHistoriesAndListings(t *testing.T) {
	const of7 = `["` + contract + `","0x7",`
	codeHash := `"` + code.Hash.Hex() + `"`
	slots := func(of ...int) string {
		var all []string
		for _, n := range of {
			all = append(all, fmt.Sprintf(`{"slot":%s,"value":%s}`, hashOf(n), hashOf(0x10+n)))
		}
		return `"slots":[` + strings.Join(all, ",") + `]`
	}
	const (
		place3  = `{"block":"0x3","hash":"0x0000000000000000000000000000000000000000000000000000000000000003","level":"sealed",`
		place5  = `{"block":"0x5","hash":"0x0000000000000000000000000000000000000000000000000000000000000005","level":"sealed",`
		promise = `{"block":"0x6","hash":null,"index":"0x4","level":"preconfirmed",`
	)
	pending := &chain.Preconfirmed{Header: &types.Header{Number: big.NewInt(6)}, Index: 4}
	diff := func(n int) string {
		return `"accounts":[{"address":"0x` + fmt.Sprintf("%040x", n) + `","account":{"nonce":"0x7","balance":"0x0","codeHash":` + codeHash + `},"wiped":false,"slots":[]},` +
			`{"address":"0x00000000000000000000000000000000000000aa","account":null,"wiped":true,"slots":[]},` +
			`{"address":"0x00000000000000000000000000000000000000bb","wiped":false,` + slots(1) + `}],` +
			`"codes":[{"hash":` + codeHash + `,"code":"0x6001"}]}`
	}
	tests := []struct {
		name, method, params string
		pending              *chain.Preconfirmed
		want                 string
	}{
		{"whole history", "glimpse_getStorageHistory", of7 + `"0x3","0x4"]`, nil,
			`{"changes":[` + sealedSlot(3) + `,` + sealedSlot(4) + `],"next":null}`},
		{"of one block", "glimpse_getStorageHistory", of7 + `"0x3","0x3",null]`, nil,
			`{"changes":[` + sealedSlot(3) + `],"next":null}`},
		{"a page", "glimpse_getStorageHistory", of7 + `"0x2","0x5",{"limit":"0x2"}]`, nil,
			`{"changes":[` + sealedSlot(2) + `,` + sealedSlot(3) + `],"next":"0x3"}`},
		{"the next page", "glimpse_getStorageHistory", of7 + `"0x2","0x5",{"limit":"0x1","after":"0x3"}]`, nil,
			`{"changes":[` + sealedSlot(4) + `],"next":"0x4"}`},
		{"the last page", "glimpse_getStorageHistory", of7 + `"0x2","0x5",{"after":"0x4","limit":null}]`, nil,
			`{"changes":[` + sealedSlot(5) + `],"next":null}`},
		{"after the end", "glimpse_getStorageHistory", of7 + `"0x2","0x5",{"after":"0x5"}]`, nil, `{"changes":[],"next":null}`},
		{"tags", "glimpse_getStorageHistory", of7 + `"latest","pending"]`, nil, `{"changes":[` + sealedSlot(5) + `],"next":null}`},
		{"pre-confirmed and no other value", "glimpse_getStorageHistory", of7 + `"latest","pending"]`, pending,
			`{"changes":[` + sealedSlot(5) + `],"next":null}`},
		{"pending alone", "glimpse_getStorageHistory", of7 + `"pending","pending"]`, pending,
			`{"changes":[{"block":"0x6","index":"0x4","level":"preconfirmed","value":` + word(5, 7) + `}],"next":null}`},

		{"codes", "glimpse_getCodeHistory", `["` + contract + `","0x4","0x5"]`, nil,
			`{"changes":[{"block":"0x4","level":"sealed","codeHash":null},{"block":"0x5","level":"sealed","codeHash":` + codeHash + `}],"next":null}`},
		{"a page of codes", "glimpse_getCodeHistory", `["` + contract + `","0x2","0x5",{"limit":"0x1","after":"0x2"}]`, nil,
			`{"changes":[{"block":"0x3","level":"sealed","codeHash":` + codeHash + `}],"next":"0x3"}`},
		{"code on pending", "glimpse_getCodeHistory", `["` + contract + `","pending","pending"]`, pending,
			`{"changes":[{"block":"0x6","index":"0x4","level":"preconfirmed","codeHash":` + codeHash + `}],"next":null}`},

		{"listing of latest", "glimpse_listStorage", `["` + contract + `"]`, nil, place5 + slots(1, 2, 3) + `,"next":null}`},
		{"listing by hash", "glimpse_listStorage", `["` + contract + `",` + hashOf(3) + `]`, nil, place3 + slots(1, 2, 3) + `,"next":null}`},
		{"listing, a page", "glimpse_listStorage", `["` + contract + `","0x3",{"limit":"0x2"}]`, nil, place3 + slots(1, 2) + `,"next":` + hashOf(2) + `}`},
		{"listing, the last page", "glimpse_listStorage", `["` + contract + `","0x3",{"limit":"0x2","after":` + hashOf(2) + `}]`, nil, place3 + slots(3) + `,"next":null}`},
		{"listing after the end", "glimpse_listStorage", `["` + contract + `","0x3",{"after":` + hashOf(9) + `}]`, nil, place3 + slots() + `,"next":null}`},
		{"listing of pending", "glimpse_listStorage", `["` + contract + `","pending"]`, pending, promise + slots(1, 2, 3) + `,"next":null}`},
		{"listing of pending that is latest", "glimpse_listStorage", `["` + contract + `","pending"]`, nil, place5 + slots(1, 2, 3) + `,"next":null}`},

		{"diff of latest", "glimpse_getStateDiff", `[]`, nil, place5 + `"parentHash":` + hashOf(4) + `,` + diff(5)},
		{"diff by number", "glimpse_getStateDiff", `["0x3"]`, pending, place3 + `"parentHash":` + hashOf(2) + `,` + diff(3)},
		{"diff of pending that is latest", "glimpse_getStateDiff", `["pending"]`, nil, place5 + `"parentHash":` + hashOf(4) + `,` + diff(5)},
		{"diff of pending", "glimpse_getStateDiff", `["pending"]`, pending, promise + `"parentHash":` + hashOf(5) +
			`,"accounts":[{"address":"0x00000000000000000000000000000000000000cc","wiped":false,"slots":[{"slot":` + hashOf(0) + `,"value":` + hashOf(0) + `}]}],"codes":[]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := call(t, &fake{pending: tt.pending}, tt.method, tt.params)
			if err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("%s%s\n got %s\nwant %s", tt.method, tt.params, got, tt.want)
			}
		})
	}
}

func TestHistoryAndListingErrors(t *testing.T) {
	const (
		of7    = `["` + contract + `","0x7",`
		list   = `["` + contract + `","0x3",`
		pruned = `{"reason":"pruned","oldest":"0x2","latest":"0x5"}`
		future = `{"reason":"future","oldest":"0x2","latest":"0x5"}`
	)
	pending := &chain.Preconfirmed{Header: &types.Header{Number: big.NewInt(6)}}
	tests := []struct {
		name, method, params string
		code                 int
		message, data        string
	}{
		{"no range", "glimpse_getStorageHistory", `["` + contract + `","0x7"]`, -32602, "required argument 2", ""},
		{"no end of the range", "glimpse_getCodeHistory", `["` + contract + `","0x7"]`, -32602, "required argument 2", ""},
		{"range the wrong way", "glimpse_getStorageHistory", of7 + `"0x4","0x3"]`, -32602, "ends before it begins", ""},
		{"range from pending to latest", "glimpse_getStorageHistory", of7 + `"pending","latest"]`, -32602, "ends before it begins", ""},
		{"range by hash", "glimpse_getStorageHistory", of7 + hashOf(3) + `,"0x4"]`, -32602, "(block)", ""},
		{"range past the head", "glimpse_getStorageHistory", of7 + `"0x4","0x99"]`, -32000, "header not found", future},
		{"range from a pruned block", "glimpse_getStorageHistory", of7 + `"0x1","0x4"]`, 4444, "pruned", pruned},
		{"codes from a pruned block", "glimpse_getCodeHistory", `["` + contract + `","0x1","0x4"]`, 4444, "pruned", pruned},
		{"range with a tag that no block has", "glimpse_getStorageHistory", of7 + `"safe","latest"]`, -39001, "", ""},
		{"after before the range", "glimpse_getStorageHistory", of7 + `"0x3","0x4",{"after":"0x2"}]`, -32602, "not in the range", ""},
		{"after past the range", "glimpse_getStorageHistory", of7 + `"0x3","0x4",{"after":"0x5"}]`, -32602, "not in the range", ""},
		{"after of pending alone", "glimpse_getStorageHistory", of7 + `"pending","pending",{"after":"0x5"}]`, -32602, "not in the range", ""},
		{"after a slot", "glimpse_getStorageHistory", of7 + `"0x3","0x4",{"after":` + hashOf(1) + `}]`, -32602, `invalid argument 4 (page): invalid member "after"`, ""},
		{"limit zero", "glimpse_getStorageHistory", of7 + `"0x3","0x4",{"limit":"0x0"}]`, -32602, "want 1 to 10000", ""},
		{"limit too high", "glimpse_listStorage", list + `{"limit":"0x2711"}]`, -32602, "want 1 to 10000", ""},
		{"limit a number", "glimpse_listStorage", list + `{"limit":5}]`, -32602, "hex number", ""},
		{"page a number", "glimpse_listStorage", list + `5]`, -32602, "invalid argument 2 (page): want an object", ""},
		{"unknown member", "glimpse_listStorage", list + `{"Limit":"0x1"}]`, -32602, `unknown member "Limit"`, ""},
		{"member twice", "glimpse_listStorage", list + `{"limit":"0x1","limit":"0x1"}]`, -32602, "duplicate", ""},
		{"short slot", "glimpse_listStorage", list + `{"after":"0x1"}]`, -32602, "64 hex digits", ""},
		{"too many", "glimpse_listStorage", list + `null,1]`, -32602, "too many arguments", ""},
		{"listing of a pruned block", "glimpse_listStorage", `["` + contract + `","0x1"]`, 4444, "pruned", pruned},
		{"listing past the head", "glimpse_listStorage", `["` + contract + `","0x99"]`, -32000, "header not found", future},
		{"diff of a pruned block", "glimpse_getStateDiff", `["0x1"]`, 4444, "pruned", pruned},
		{"diff past the head", "glimpse_getStateDiff", `["0x99"]`, -32000, "header not found", future},
		{"diff of an unknown hash", "glimpse_getStateDiff", `["0xff00000000000000000000000000000000000000000000000000000000000003"]`, -32000, "hash not found", `{"reason":"unknown-hash","oldest":"0x2","latest":"0x5"}`},
		{"status of something", "glimpse_status", `["latest"]`, -32602, "too many arguments", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := call(t, &fake{pending: pending}, tt.method, tt.params)
			if err == nil {
				t.Fatalf("got %s, want code %d", got, tt.code)
			}
			if err.Code != tt.code || !strings.Contains(err.Message, tt.message) || string(err.Data) != tt.data {
				t.Errorf("got %d %q %s\nwant %d %q %s", err.Code, err.Message, err.Data, tt.code, tt.message, tt.data)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	const head = `{"version":"glimpse/test","chainId":"0x7a69",`
	latest := `"latest":{"number":"0x5","hash":` + hashOf(5) + fmt.Sprintf(`,"timestamp":"0x%x"}`, fakeHeader(5).Time)
	tags := `,"safe":null,"finalized":{"number":"0x3","hash":` + hashOf(3) + `}`
	tests := []struct {
		name    string
		pending *chain.Preconfirmed
		status  func() ethapi.NodeStatus
		want    string
	}{
		{"nothing known", nil, nil, head + `"source":null,` + latest + tags +
			`,"pending":null,"feed":null,"retention":{"oldestState":"0x2","policy":null},"snapshot":"5:stamp;pending=latest"}`},
		{"a silent feed", nil, func() ethapi.NodeStatus {
			return ethapi.NodeStatus{Source: "dev", Retention: "all", Feed: &ethapi.FeedStatus{MaxAge: 4 * time.Second}}
		}, head + `"source":"dev",` + latest + tags +
			`,"pending":null,"feed":{"connected":false,"ageMs":null,"maxAgeMs":4000},"retention":{"oldestState":"0x2","policy":"all"},"snapshot":"5:stamp;pending=latest"}`},
		{"pre-confirmed", &chain.Preconfirmed{Header: &types.Header{Number: big.NewInt(6)}, Index: 4}, func() ethapi.NodeStatus {
			return ethapi.NodeStatus{Feed: &ethapi.FeedStatus{Connected: true, Last: time.Now().Add(time.Hour)}}
		}, head + `"source":null,` + latest + tags +
			`,"pending":{"number":"0x6","index":"0x4","ageMs":0},"feed":{"connected":true,"ageMs":0,"maxAgeMs":null},"retention":{"oldestState":"0x2","policy":null},"snapshot":"5:stamp;pending=6.4"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := callWith(t, &fake{pending: tt.pending}, func(c *ethapi.Config) { c.Status = tt.status }, "glimpse_status", `[]`)
			if err != nil || got != tt.want {
				t.Errorf("\n got %s, %v\nwant %s", got, err, tt.want)
			}
		})
	}
}
