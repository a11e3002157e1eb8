// SPDX-License-Identifier: Apache-2.0

package opstack_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"

	"glimpse/chain"
	"glimpse/evm/opstack"
)

// TestAgainstOpGeth has a real op-geth build a chain through all forks up to
// Jovian, from deposits and signed transactions, and executes each block as well.
// After each block state root, receipts root, gas used and bloom must be those of
// op-geth's header, and every changed slot, code, balance and nonce is what
// op-geth answers.
//
// GLIMPSE_OPGETH is the op-geth to compare with, which peers/opgeth pins. With GLIMPSE_OPGETH_RECORD the
// chain is written to the file that TestRecordedChain executes.
func TestAgainstOpGeth(t *testing.T) {
	binary := os.Getenv("GLIMPSE_OPGETH")
	if binary == "" {
		t.Skip("GLIMPSE_OPGETH is not set")
	}
	for _, seed := range []uint64{recordedSeed, 2, 3} {
		t.Run(seedName(seed), func(t *testing.T) {
			record := againstOpGeth(t, binary, seed)
			if seed == recordedSeed && os.Getenv("GLIMPSE_OPGETH_RECORD") != "" {
				writeRecord(t, record)
			}
		})
	}
}

func againstOpGeth(t *testing.T, binary string, seed uint64) (blocks [][]byte) {
	t.Helper()
	w := newWorld(t, seed)
	peer := startOpGeth(t, binary, genesisAlloc(w.users))
	blocks = append(blocks, peer.rawBlock(t, 0))
	replay := newReplay(t, newRules(t, testConfig(t)), w.users, blocks[0])
	compared := 0
	for n := uint64(1); n <= chainLength; n++ {
		peer.build(t, n, w.block(n))
		raw := peer.rawBlock(t, n)
		compared += peer.compare(t, n, replay, replay.step(t, raw))
		blocks = append(blocks, raw)
	}
	t.Logf("%d blocks, %d transactions, %d values compared", chainLength, replay.transactions, compared)
	return blocks
}

// An opGeth is a running op-geth, spoken to over its socket.
type opGeth struct {
	conn net.Conn
	in   *json.Decoder
	id   int
	head chain.Hash
}

func startOpGeth(t *testing.T, binary string, alloc types.GenesisAlloc) *opGeth {
	t.Helper()
	// The path of a socket must be short, which t.TempDir's may not be.
	dir, err := os.MkdirTemp("", "opgeth")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	genesis := filepath.Join(dir, "genesis.json")
	if err := os.WriteFile(genesis, opGethGenesis(t, alloc), 0o600); err != nil {
		t.Fatal(err)
	}
	common := []string{"--datadir", dir, "--gcmode", "archive", "--state.scheme", "hash"}
	if out, err := exec.CommandContext(t.Context(), binary, append(common, "init", genesis)...).CombinedOutput(); err != nil {
		t.Fatalf("op-geth init: %v\n%s", err, out)
	}
	socket := filepath.Join(dir, "ipc")
	cmd := exec.Command(binary, append(common, "--networkid", fmt.Sprint(chainID), "--syncmode", "full", "--nodiscover",
		"--maxpeers", "0", "--port", "0", "--authrpc.port", "0", "--ipcpath", socket)...)
	log := new(bytes.Buffer)
	cmd.Stderr, cmd.Stdout = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // if it is gone already, Wait tells
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Logf("op-geth ended: %v\n%s", err, log)
		}
	})
	conn := dialSocket(t, socket)
	t.Cleanup(func() { _ = conn.Close() })
	return &opGeth{conn: conn, in: json.NewDecoder(conn)}
}

func dialSocket(t *testing.T, path string) net.Conn {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for {
		if conn, err := net.Dial("unix", path); err == nil {
			return conn
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("op-geth does not listen after a minute")
		}
	}
}

func opGethGenesis(t *testing.T, alloc types.GenesisAlloc) []byte {
	t.Helper()
	config := map[string]any{
		"chainId": chainID, "terminalTotalDifficulty": 0, "bedrockBlock": 0, "regolithTime": 0,
		"optimism": map[string]any{"eip1559Elasticity": 6, "eip1559Denominator": 50, "eip1559DenominatorCanyon": 250},
	}
	for _, block := range []string{"homestead", "eip150", "eip155", "eip158", "byzantium", "constantinople", "petersburg",
		"istanbul", "muirGlacier", "berlin", "london", "arrowGlacier", "grayGlacier", "mergeNetsplit"} {
		config[block+"Block"] = 0
	}
	for fork, block := range forkBlocks {
		config[fork+"Time"] = timeOf(block)
	}
	config["shanghaiTime"], config["cancunTime"], config["pragueTime"] = config["canyonTime"], config["ecotoneTime"], config["isthmusTime"]
	text, err := json.Marshal(map[string]any{
		"config": config, "alloc": alloc, "difficulty": "0x0", "gasLimit": hexutil.Uint64(gasLimit),
		"timestamp": hexutil.Uint64(genesisTime), "baseFeePerGas": "0x3b9aca00", "extraData": "0x",
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (g *opGeth) call(t *testing.T, result any, method string, params ...any) {
	t.Helper()
	g.id++
	if params == nil {
		params = []any{}
	}
	if err := json.NewEncoder(g.conn).Encode(map[string]any{"jsonrpc": "2.0", "id": g.id, "method": method, "params": params}); err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Result json.RawMessage
		Error  json.RawMessage
	}
	if err := g.in.Decode(&answer); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	if answer.Error != nil {
		t.Fatalf("%s: %s", method, answer.Error)
	}
	if err := json.Unmarshal(answer.Result, result); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
}

func (g *opGeth) rawBlock(t *testing.T, n uint64) []byte {
	t.Helper()
	var raw hexutil.Bytes
	g.call(t, &raw, "debug_getRawBlock", hexutil.Uint64(n))
	if n == 0 {
		header, _, err := opstack.DecodeBlock(raw)
		if err != nil {
			t.Fatal(err)
		}
		g.head = header.Hash()
	}
	return raw
}

// build has op-geth build block n with the transactions and make it the head.
func (g *opGeth) build(t *testing.T, n uint64, txs []*opstack.Transaction) {
	t.Helper()
	at := func(fork string) bool { at, _ := reached(fork, n); return at }
	raw := make([]hexutil.Bytes, len(txs))
	for i, tx := range txs {
		raw[i] = tx.Raw()
	}
	attributes := map[string]any{
		"timestamp": hexutil.Uint64(timeOf(n)), "prevRandao": chain.Hash{31: byte(n)}, "suggestedFeeRecipient": sequencerVault,
		"transactions": raw, "noTxPool": true, "gasLimit": hexutil.Uint64(gasLimit),
	}
	root := chain.Hash{0: 0xbe, 31: byte(n)}
	update, get, importing := "V1", "V1", "V1"
	if at("canyon") {
		update, get, importing = "V2", "V2", "V2"
		attributes["withdrawals"] = []any{}
	}
	if at("ecotone") {
		update, get, importing = "V3", "V3", "V3"
		attributes["parentBeaconBlockRoot"] = root
	}
	if at("holocene") {
		attributes["eip1559Params"] = hexutil.Bytes{0, 0, 0, 100 + byte(n), 0, 0, 0, 4}
	}
	if at("isthmus") {
		get, importing = "V4", "V4"
	}
	if at("jovian") {
		attributes["minBaseFee"] = 980_000_000 - n*2_000_000
	}
	id := g.forkchoice(t, update, attributes)
	payload := g.payload(t, get, id)
	params := []any{payload}
	if at("ecotone") {
		params = append(params, []any{}, root)
	}
	if at("isthmus") {
		params = append(params, []any{})
	}
	var status struct{ Status, ValidationError string }
	g.call(t, &status, "engine_newPayload"+importing, params...)
	if status.Status != "VALID" {
		t.Fatalf("block %d: %+v", n, status)
	}
	var hash struct{ BlockHash chain.Hash }
	if err := json.Unmarshal(payload, &hash); err != nil {
		t.Fatal(err)
	}
	g.head = hash.BlockHash
	g.forkchoice(t, update, nil)
}

func (g *opGeth) payload(t *testing.T, version string, id hexutil.Bytes) json.RawMessage {
	t.Helper()
	var answer json.RawMessage
	g.call(t, &answer, "engine_getPayload"+version, id)
	var envelope struct{ ExecutionPayload json.RawMessage }
	if err := json.Unmarshal(answer, &envelope); err != nil {
		t.Fatal(err)
	}
	if envelope.ExecutionPayload == nil {
		return answer
	}
	return envelope.ExecutionPayload
}

func (g *opGeth) forkchoice(t *testing.T, version string, attributes any) hexutil.Bytes {
	t.Helper()
	var answer struct {
		PayloadStatus struct{ Status, ValidationError string }
		PayloadID     *hexutil.Bytes // null where nothing is to be built
	}
	state := map[string]any{"headBlockHash": g.head, "safeBlockHash": g.head, "finalizedBlockHash": g.head}
	g.call(t, &answer, "engine_forkchoiceUpdated"+version, state, attributes)
	if answer.PayloadStatus.Status != "VALID" {
		t.Fatalf("forkchoice: %+v", answer)
	}
	if answer.PayloadID == nil {
		return nil
	}
	return *answer.PayloadID
}

// compare asks op-geth for everything that a block changed.
func (g *opGeth) compare(t *testing.T, n uint64, r *replay, diff *chain.Diff) (compared int) {
	t.Helper()
	block := hexutil.Uint64(n)
	for _, a := range diff.Accounts {
		account, err := r.state.Account(a.Address)
		if err != nil {
			t.Fatal(err)
		}
		code, err := r.state.Code(account.CodeHash)
		if err != nil {
			t.Fatal(err)
		}
		var balance hexutil.Big
		var nonce hexutil.Uint64
		var bytecode hexutil.Bytes
		g.call(t, &balance, "eth_getBalance", a.Address, block)
		g.call(t, &nonce, "eth_getTransactionCount", a.Address, block)
		g.call(t, &bytecode, "eth_getCode", a.Address, block)
		want := chain.Account{Nonce: uint64(nonce), Balance: *uint256.MustFromBig((*big.Int)(&balance))}
		if account.Nonce != want.Nonce || account.Balance != want.Balance || !bytes.Equal(code, bytecode) {
			t.Errorf("block %d, %s: got %+v and %d bytes of code, want %+v and %d", n, a.Address, account, len(code), want, len(bytecode))
		}
		compared += 3
		for _, s := range a.Slots {
			var value chain.Value
			g.call(t, &value, "eth_getStorageAt", a.Address, s.Slot, block)
			if got, err := r.state.Slot(a.Address, s.Slot); err != nil || got != value {
				t.Errorf("block %d, %s slot %s: got %s (%v), want %s", n, a.Address, s.Slot, got, err, value)
			}
			compared++
		}
	}
	return compared
}
