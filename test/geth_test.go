// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"glimpse/archive"
	"glimpse/chain"
	"glimpse/internal/chaingen"
	"glimpse/internal/fixture"
)

// TestAgainstGeth has a real geth import the same blocks as an archive and
// compares what both answer: every slot that was ever changed, every code and
// every changed account, at every block, by number and by hash.
//
// GLIMPSE_GETH is the geth to compare with; make e2e-geth builds one.
// GLIMPSE_CHAIN_BLOCKS is how long the generated chain is, 2,000 by default.
func TestAgainstGeth(t *testing.T) {
	geth := os.Getenv("GLIMPSE_GETH")
	if geth == "" {
		t.Skip("GLIMPSE_GETH is not set; make e2e-geth builds a geth and sets it")
	}
	t.Run("conformance chain", func(t *testing.T) {
		suite := fixture.Conformance(t)
		file := chainFile{filepath.Join(suite, "genesis.json"), filepath.Join(suite, "chain.rlp")}
		againstGeth(t, geth, importChain(t, file), file)
	})
	t.Run("generated chain", func(t *testing.T) {
		const seed = 1
		genesis, blocks := chaingen.Generate(seed, number(t, "GLIMPSE_CHAIN_BLOCKS", 2000), chaingen.Options{})
		file := writeChain(t, genesis, blocks)
		againstGeth(t, geth, importChain(t, file), file)
	})
}

func importChain(t *testing.T, file chainFile) (dir string) {
	t.Helper()
	dir = t.TempDir()
	mustRun(t, file.importArgs(dir)...)
	return dir
}

// againstGeth compares a datadir with a geth that imports the same chain.
func againstGeth(t *testing.T, geth, dir string, file chainFile) {
	t.Helper()
	c := comparison{
		geth: startGeth(t, geth, file),
		keys: collectKeys(t, dir),
	}
	c.glimpse = serve(t, "serve", "--datadir", dir, "--http.port", "0").url()

	start := time.Now()
	blocks := make(chan int)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for n := range blocks {
				if err := c.block(t, n); err != nil {
					t.Errorf("block %d: %v", n, err)
				}
			}
		})
	}
	for n := range c.keys.hashes {
		blocks <- n
	}
	close(blocks)
	workers.Wait()
	t.Logf("%d comparisons, %d differences: %d blocks, %d slots, %d addresses with code, %v",
		c.compared.Load(), c.different.Load(), len(c.keys.hashes), c.keys.slots, len(c.keys.coded), time.Since(start).Round(time.Second))
}

// keys is what there is to compare on a chain.
type keys struct {
	hashes   []chain.Hash // of each block
	diffs    []*chain.Diff
	storages []json.RawMessage // all slots ever changed, as parameters of eth_getStorageValues
	slots    int
	coded    []chain.Address // all addresses that ever had code
}

// collectKeys reads the journals of a datadir. That they miss no change is what
// the state roots showed at the import.
func collectKeys(t *testing.T, dir string) (k keys) {
	t.Helper()
	db, err := archive.Open(dir, archive.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r, err := db.NewReader()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	coded := make(map[chain.Address]bool)
	slots := make(map[chain.Address]map[chain.Slot]bool)
	for n := range r.Head().Number + 1 {
		hash, err := r.Hash(n)
		if err != nil {
			t.Fatal(err)
		}
		diff, err := r.Diff(n)
		if err != nil {
			t.Fatal(err)
		}
		k.hashes, k.diffs = append(k.hashes, hash), append(k.diffs, diff)
		for _, a := range diff.Accounts {
			if a.Account.CodeHash != (chain.Hash{}) && !coded[a.Address] {
				coded[a.Address] = true
				k.coded = append(k.coded, a.Address)
			}
			for _, s := range a.Slots {
				if slots[a.Address] == nil {
					slots[a.Address] = make(map[chain.Slot]bool)
				}
				slots[a.Address][s.Slot] = true
			}
		}
	}
	k.pack(slots)
	return k
}

// pack spreads slots over requests of at most what one may ask for.
func (k *keys) pack(slots map[chain.Address]map[chain.Slot]bool) {
	const most = 1024
	request, room := make(map[chain.Address][]chain.Slot), most
	flush := func() {
		text, err := json.Marshal(request)
		if err != nil {
			panic(err) // of addresses and hashes
		}
		k.storages = append(k.storages, text)
		request, room = make(map[chain.Address][]chain.Slot), most
	}
	for addr, of := range slots {
		for slot := range of {
			request[addr] = append(request[addr], slot)
			k.slots++
			if room--; room == 0 {
				flush()
			}
		}
	}
	if len(request) > 0 {
		flush()
	}
}

type comparison struct {
	glimpse, geth       string
	keys                keys
	compared, different atomic.Int64
}

type rpcCall struct {
	Version string `json:"jsonrpc"`
	ID      int    `json:"id"`
	Method  string `json:"method"`
	Params  []any  `json:"params"`
}

// block compares all there is at block n.
func (c *comparison) block(t *testing.T, n int) error {
	number, hash := fmt.Sprintf("%#x", n), c.keys.hashes[n].Hex()
	var calls []rpcCall
	add := func(method string, params ...any) {
		calls = append(calls, rpcCall{"2.0", len(calls), method, params})
	}
	for _, block := range []any{number, hash, map[string]any{"blockHash": hash, "requireCanonical": true}} {
		for _, a := range c.keys.diffs[n].Accounts {
			add("eth_getBalance", a.Address, block)
			add("eth_getTransactionCount", a.Address, block)
			for _, s := range a.Slots {
				add("eth_getStorageAt", a.Address, s.Slot, block)
			}
		}
	}
	for _, block := range []any{number, hash} {
		for _, request := range c.keys.storages {
			add("eth_getStorageValues", request, block)
		}
		for _, addr := range c.keys.coded {
			add("eth_getCode", addr, block)
		}
	}
	const batch = 200
	for len(calls) > 0 {
		part := calls[:min(batch, len(calls))]
		calls = calls[len(part):]
		if err := c.batch(t, part); err != nil {
			return err
		}
	}
	return nil
}

type rpcAnswer struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// batch sends calls to both and compares the answers one by one.
func (c *comparison) batch(t *testing.T, calls []rpcCall) error {
	body, err := json.Marshal(calls)
	if err != nil {
		return err
	}
	ours, err := ask(t, c.glimpse, body, calls)
	if err != nil {
		return fmt.Errorf("glimpse: %w", err)
	}
	theirs, err := ask(t, c.geth, body, calls)
	if err != nil {
		return fmt.Errorf("geth: %w", err)
	}
	for i, call := range calls {
		c.compared.Add(int64(call.values(theirs[i].Result)))
		// Both write an object in the order of the request, which is sorted.
		if !bytes.Equal(ours[i].Result, theirs[i].Result) {
			c.different.Add(1)
			t.Errorf("%s%v: glimpse %s, geth %s", call.Method, call.Params, ours[i].Result, theirs[i].Result)
		}
	}
	return nil
}

func ask(t testing.TB, url string, body []byte, calls []rpcCall) ([]rpcAnswer, error) {
	data, err := post(t.Context(), url, body)
	if err != nil {
		return nil, err
	}
	var answers []rpcAnswer
	if err := json.Unmarshal(data, &answers); err != nil {
		return nil, fmt.Errorf("%w: %.300s", err, data)
	}
	if len(answers) != len(calls) {
		return nil, fmt.Errorf("%d answers to %d calls", len(answers), len(calls))
	}
	for i, a := range answers {
		if a.ID != calls[i].ID || a.Result == nil {
			return nil, fmt.Errorf("%s%v: %s (id %d)", calls[i].Method, calls[i].Params, a.Error, a.ID)
		}
	}
	return answers, nil
}

// values returns how many values an answer to the call holds.
func (c rpcCall) values(result json.RawMessage) int {
	if c.Method != "eth_getStorageValues" {
		return 1
	}
	// Each value is 32 bytes; addresses, the other strings, are shorter.
	return strings.Count(string(result), `"0x`) - strings.Count(string(result), `":[`)
}

var gethListens = regexp.MustCompile(`HTTP server started +endpoint=(\S+) auth=false`)

// startGeth imports the chain into a geth archive and starts it.
func startGeth(t *testing.T, geth string, file chainFile) (url string) {
	t.Helper()
	dir := t.TempDir()
	common := []string{"--datadir", dir, "--gcmode", "archive", "--state.scheme", "hash"}
	runGeth(t, geth, append(common, "init", file.genesis)...)
	runGeth(t, geth, append(common, "import", file.blocks)...)

	text, err := os.ReadFile(file.genesis)
	if err != nil {
		t.Fatal(err)
	}
	var genesis struct{ Config struct{ ChainID *big.Int } }
	if err := json.Unmarshal(text, &genesis); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(geth, append(common, "--networkid", genesis.Config.ChainID.String(),
		"--syncmode", "full", "--nodiscover", "--maxpeers", "0", "--port", "0", "--ipcdisable",
		"--authrpc.port", "0", "--http", "--http.port", "0", "--http.api", "eth,debug")...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	endpoint, done, log := make(chan string, 1), make(chan struct{}), new(bytes.Buffer)
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			fmt.Fprintln(log, lines.Text())
			if m := gethListens.FindStringSubmatch(lines.Text()); m != nil {
				endpoint <- m[1]
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // if it is gone already, Wait tells
		<-done
		if err := cmd.Wait(); err != nil {
			t.Errorf("geth: %v\n%s", err, log)
		}
	})
	select {
	case addr := <-endpoint:
		return "http://" + addr
	case <-done:
		t.Fatalf("geth ended before it listened:\n%s", log)
	case <-time.After(time.Minute):
		t.Fatal("geth does not listen after a minute")
	}
	return ""
}

func runGeth(t *testing.T, geth string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), geth, args...).CombinedOutput(); err != nil {
		t.Fatalf("geth %v: %v\n%s", args, err, out)
	}
}
