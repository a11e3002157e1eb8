// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"glimpse/internal/fixture"
)

// served lists the directories of the official suite whose methods glimpse
// answers. A vector of a method not listed here is not run; a listed method
// without vectors fails.
var served = []string{
	"debug_getRawBlock", "debug_getRawHeader", "debug_getRawReceipts", "debug_getRawTransaction",
	"eth_baseFee", "eth_blobBaseFee", "eth_blockNumber", "eth_call",
	"eth_capabilities", "eth_chainId", "eth_config", "eth_createAccessList",
	"eth_estimateGas", "eth_feeHistory", "eth_getBalance",
	"eth_getBlockByHash", "eth_getBlockByNumber", "eth_getBlockReceipts",
	"eth_getBlockTransactionCountByHash", "eth_getBlockTransactionCountByNumber",
	"eth_getCode", "eth_getLogs", "eth_getStorageAt", "eth_getStorageValues",
	"eth_getTransactionByBlockHashAndIndex", "eth_getTransactionByBlockNumberAndIndex",
	"eth_getTransactionByHash", "eth_getTransactionCount", "eth_getTransactionReceipt",
	"eth_syncing", "net_version",
}

// TestConformance runs the official vectors, compared as the official runner
// compares them: error messages are free where both sides have one, everything
// else is structural equality. Vectors that ask only for the right shape are
// compared in full too, but for the one whose values are the node's own.
func TestConformance(t *testing.T) {
	suite := fixture.Conformance(t)
	s := serve(t, "serve", "--datadir", conformanceDir(t, suite), "--http.port", "0")
	for _, carrier := range s.carriers(t) {
		for _, method := range served {
			files, err := filepath.Glob(filepath.Join(suite, method, "*.io"))
			if err != nil || len(files) == 0 {
				t.Errorf("no vectors for %s (%v)", method, err)
			}
			for _, file := range files {
				t.Run(carrier.name+"/"+method+"/"+strings.TrimSuffix(filepath.Base(file), ".io"), func(t *testing.T) {
					converse(t, carrier.send, file)
				})
			}
		}
	}
}

// A carrier takes the body of a request to glimpse and its answer back.
type carrier struct {
	name string
	send func(t *testing.T, body []byte) []byte
}

// carriers are all ways to send a request.
func (s *server) carriers(t *testing.T) []carrier {
	t.Helper()
	overHTTP := func(t *testing.T, body []byte) []byte {
		t.Helper()
		answer, err := post(t.Context(), s.url(), body)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	return []carrier{{"http", overHTTP}, {"websocket", s.dial(t).ask}}
}

// The embedded chain goes on where the suite's chain ends, so that transactions
// can be sent to it.
func TestConformanceOfSending(t *testing.T) {
	suite := fixture.Conformance(t)
	s := startDev(t, "--datadir", conformanceDir(t, suite), "--genesis", filepath.Join(suite, "genesis.json"),
		"--dev.block-time", "1h", "--dev.flashblock-time", "10m")
	files, err := filepath.Glob(filepath.Join(suite, "eth_sendRawTransaction", "*.io"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors (%v)", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".io"), func(t *testing.T) { converse(t, s.carriers(t)[0].send, file) })
	}
}

// conformanceDir imports the suite's chain and sets the heads that its
// forkchoice message names.
func conformanceDir(t *testing.T, suite string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(suite, "headfcu.json"))
	if err != nil {
		t.Fatal(err)
	}
	var update struct {
		Params []struct{ HeadBlockHash, SafeBlockHash, FinalizedBlockHash string }
	}
	if err := json.Unmarshal(data, &update); err != nil {
		t.Fatal(err)
	}
	heads, dir := update.Params[0], t.TempDir()
	mustRun(t, "import", "--datadir", dir, "--genesis", filepath.Join(suite, "genesis.json"),
		"--head", heads.HeadBlockHash, "--safe", heads.SafeBlockHash, "--finalized", heads.FinalizedBlockHash,
		filepath.Join(suite, "chain.rlp"))
	return dir
}

// converse plays one .io file: lines with >> are sent, lines with << are what
// must come back.
func converse(t *testing.T, send func(*testing.T, []byte) []byte, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var answer []byte
	shapeOnly := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "// speconly:"):
			shapeOnly = true
		case strings.HasPrefix(line, ">> "):
			answer = send(t, []byte(line[3:]))
		case strings.HasPrefix(line, "<< "):
			got, want := parse(t, answer), parse(t, []byte(line[3:]))
			if shapeOnly && strings.Contains(file, "eth_capabilities") {
				capabilitiesFit(t, got)
				continue
			}
			forgetMessages(got, want)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %s\nwant %s", answer, line[3:])
			}
		}
	}
	if answer == nil {
		t.Error("the file sends nothing")
	}
}

func parse(t *testing.T, data []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("not JSON: %v: %s", err, data)
	}
	return v
}

// capabilitiesFit checks the answer of eth_capabilities against its schema.
func capabilitiesFit(t *testing.T, doc any) {
	t.Helper()
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	type resource struct {
		Disabled       *bool           `json:"disabled"`
		OldestBlock    *hexutil.Uint64 `json:"oldestBlock"`
		DeleteStrategy json.RawMessage `json:"deleteStrategy"`
	}
	var answer struct {
		Version string `json:"jsonrpc"`
		ID      int    `json:"id"`
		Result  struct {
			Head struct {
				Number *hexutil.Uint64 `json:"number"`
				Hash   *common.Hash    `json:"hash"`
			} `json:"head"`
			State, Tx, Logs, Receipts, Blocks, StateProofs *resource
		} `json:"result"`
	}
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&answer); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	r := answer.Result
	if r.Head.Number == nil || r.Head.Hash == nil {
		t.Errorf("no head: %s", text)
	}
	for i, res := range []*resource{r.State, r.Tx, r.Logs, r.Receipts, r.Blocks, r.StateProofs} {
		if res == nil || res.Disabled == nil || *res.Disabled != (res.OldestBlock == nil) {
			t.Errorf("resource %d does not fit: %s", i, text)
		}
	}
}

// forgetMessages drops error.message where both documents have one.
func forgetMessages(a, b any) {
	x, ok1 := errorOf(a)
	y, ok2 := errorOf(b)
	if !ok1 || !ok2 || x["message"] == nil || y["message"] == nil {
		return
	}
	delete(x, "message")
	delete(y, "message")
}

func errorOf(v any) (map[string]any, bool) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, false
	}
	e, ok := m["error"].(map[string]any)
	return e, ok
}
