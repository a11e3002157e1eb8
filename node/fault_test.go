// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"glimpse/archive/archivetest"
	"glimpse/internal/chaingen"
	"glimpse/node"
)

// bigGenesis has a contract with so many slots, and so much code, that most of
// it is on disk and not in a small cache.
func bigGenesis(t *testing.T) []byte {
	t.Helper()
	genesis, _ := chaingen.Generate(1, 0, chaingen.Options{})
	var spec map[string]any
	if err := json.Unmarshal(genesis, &spec); err != nil {
		t.Fatal(err)
	}
	storage := make(map[string]string)
	for i := range 20_000 {
		key := fmt.Sprintf("0x%064x", i)
		storage[key] = crypto.Keccak256Hash([]byte(key)).Hex()
	}
	for i := range 100 {
		code := strings.Repeat(fmt.Sprintf("%04x", i), 12_000)
		address := common.BigToAddress(common.Big256).Hex()[:38] + fmt.Sprintf("%04x", i)
		entry := map[string]any{"balance": "0x1", "code": "0x" + code}
		if i == 50 {
			entry["storage"] = storage
		}
		spec["alloc"].(map[string]any)[address] = entry
	}
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// writeFiles puts a chain on the machine's disk, where imports read from.
func writeFiles(t *testing.T, genesis []byte, blocks []*types.Block) (genesisFile, blocksFile string) {
	t.Helper()
	dir := t.TempDir()
	genesisFile, blocksFile = filepath.Join(dir, "genesis.json"), filepath.Join(dir, "blocks.rlp")
	if err := os.WriteFile(genesisFile, genesis, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(blocksFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, b := range blocks {
		if err := b.EncodeRLP(f); err != nil {
			t.Fatal(err)
		}
	}
	return genesisFile, blocksFile
}

// P2: with the disk failing, every method that reads answers an error: no zero,
// no 0x, no null. With the disk back, the same requests are answered.
func TestEveryReadFailsWithTheDisk(t *testing.T) {
	genesis := bigGenesis(t)
	// Opening a store reads what belongs to its head: others must be far from it.
	blocks, err := chaingen.Empty(genesis, 500)
	if err != nil {
		t.Fatal(err)
	}
	genesisFile, blocksFile := writeFiles(t, genesis, blocks)
	disk := archivetest.NewDisk()
	store := node.Store{Datadir: "db", CacheMB: 8, Files: disk.FS}
	config := node.ImportConfig{
		Store: store, Genesis: genesisFile, Files: []string{blocksFile}, Verify: "off",
		Safe: "2", Finalized: "1", Log: slog.New(slog.DiscardHandler),
	}
	// The second time there is nothing to import, but opening the store brings
	// what was only in its log into tables.
	for range 2 {
		if err := node.Import(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	url, operations := startServe(t, store)
	if status, why := readiness(t, operations); status != http.StatusOK {
		t.Errorf("before anything is wrong, the node is not ready: %s", why)
	}

	contract := common.BigToAddress(common.Big256).Hex()[:38] + "0032"
	hash := blocks[1].Hash().Hex()
	requests := []string{
		`"method":"eth_getStorageAt","params":["` + contract + `","0x1000","latest"]`,
		`"method":"eth_getStorageAt","params":["` + contract + `","0x2000","0x1"]`,
		`"method":"eth_getStorageAt","params":["` + contract + `","0x3000",{"blockHash":"` + hash + `"}]`,
		`"method":"eth_getStorageValues","params":[{"` + contract + `":["0x4000"]},"safe"]`,
		`"method":"eth_getCode","params":["` + contract + `","finalized"]`,
		`"method":"eth_getBalance","params":["` + contract + `","earliest"]`,
		`"method":"eth_getTransactionCount","params":["` + contract + `","pending"]`,
		`"method":"eth_getBlockByNumber","params":["0x0",true]`,
		`"method":"eth_getBlockByHash","params":["` + hash + `",false]`,
	}
	disk.FailReads(true)
	for _, r := range requests {
		if got := ask(t, url, r); !strings.Contains(got, `"error":{"code":-32603,"message":"internal error"}`) {
			t.Errorf("with a broken disk {%s} answers %.200s, want an error", r, got)
		}
	}
	if status, why := readiness(t, operations); status != http.StatusServiceUnavailable || !strings.Contains(why, `"reason":"store-error"`) {
		t.Errorf("with a broken disk /readyz answers %d %s, want store-error", status, why)
	}
	disk.FailReads(false)
	for _, r := range requests {
		if got := ask(t, url, r); !strings.Contains(got, `"result":`) || strings.Contains(got, `"result":null`) {
			t.Errorf("with the disk back {%s} answers %.200s, want a result", r, got)
		}
	}
}

// readiness asks /readyz.
func readiness(t *testing.T, operations string) (status int, body string) {
	t.Helper()
	resp, err := http.Get(operations + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// startServe runs Serve until the end of the test and returns where it answers
// requests, and operators.
func startServe(t *testing.T, store node.Store) (url, operations string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	addr, ended := make(chan string, 2), make(chan error, 1)
	log := slog.New(listenHandler{slog.DiscardHandler, addr})
	local := node.Endpoint{Addr: "127.0.0.1"}
	go func() {
		ended <- node.Serve(ctx, node.ServeConfig{Service: node.Service{HTTP: local, Ops: local}, Store: store, Log: log})
	}()
	select {
	case a := <-addr: // that of operations comes first
		t.Cleanup(func() {
			stop()
			if err := <-ended; err != nil {
				t.Errorf("Serve: %v", err)
			}
		})
		return "http://" + <-addr, "http://" + a
	case err := <-ended:
		stop()
		t.Fatalf("Serve ended before it listened: %v", err)
	}
	return "", ""
}

// A listenHandler picks the addresses out of the log.
type listenHandler struct {
	slog.Handler
	addr chan string
}

func (h listenHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h listenHandler) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if strings.HasSuffix(r.Message, " listening") && a.Key == "addr" {
			h.addr <- a.Value.String()
		}
		return true
	})
	return nil
}

// ask sends one call, given without its envelope, and returns the response.
func ask(t *testing.T, url, call string) string {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,` + call + `}`
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
