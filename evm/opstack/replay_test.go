// SPDX-License-Identifier: Apache-2.0

package opstack_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/chain"
	"glimpse/evm"
	"glimpse/evm/opstack"
	"glimpse/internal/memview"
	"glimpse/merkle"
	"glimpse/merkle/merkletest"
)

const (
	recordedChain = "opgeth.rlp.gz"
	recordedSeed  = 1
)

// A replay executes a chain block by block in memory, with everything checked.
type replay struct {
	rules        *opstack.Rules
	state        *memview.State
	head         *types.Header
	hashes       []chain.Hash
	nodes        merkletest.Nodes
	tries        *merkle.State
	transactions int
}

func newReplay(t testing.TB, rules *opstack.Rules, users []*user, genesis []byte) *replay {
	t.Helper()
	header, _, err := opstack.DecodeBlock(genesis)
	if err != nil {
		t.Fatal(err)
	}
	r := &replay{rules: rules, state: memview.New(), nodes: make(merkletest.Nodes)}
	if r.tries, err = merkle.Open(r.nodes, 1<<20); err != nil {
		t.Fatal(err)
	}
	diff := allocDiff(genesisAlloc(users))
	if root, err := r.tries.Apply(diff); err != nil || root != header.Root {
		t.Fatalf("got genesis root %s (%v), want %s", root, err, header.Root)
	}
	r.commit(t, header, diff)
	return r
}

func (r *replay) commit(t testing.TB, header *types.Header, diff *chain.Diff) {
	t.Helper()
	if err := r.state.Apply(diff); err != nil {
		t.Fatalf("block %d: %v", header.Number, err)
	}
	r.nodes.Write(r.tries.Commit(chain.Ref{Number: chain.Number(header.Number.Uint64()), Hash: header.Hash()}))
	r.head = header
	r.hashes = append(r.hashes, header.Hash())
}

// ancestors refuses the parent: execution is to know it from the header.
func (r *replay) ancestors(n chain.Number) (chain.Hash, error) {
	if int(n) >= len(r.hashes)-1 {
		return chain.Hash{}, fmt.Errorf("asked for the hash of block %d", n)
	}
	return r.hashes[n], nil
}

func (r *replay) step(t testing.TB, raw []byte) *chain.Diff {
	t.Helper()
	header, txs, err := opstack.DecodeBlock(raw)
	if err != nil {
		t.Fatal(err)
	}
	r.transactions += len(txs)
	r.rules.RecoverSenders(header, txs)
	result, err := r.rules.Execute(header, txs, r.head, r.state, r.ancestors, evm.Checks{Receipts: true, Roots: r.tries})
	if err != nil {
		t.Fatal(err)
	}
	r.inParts(t, header, txs, result)
	r.commit(t, header, result.Diff)
	return result.Diff
}

// inParts executes the block as flashblocks would bring it, and compares what the
// parts add up to.
func (r *replay) inParts(t testing.TB, header *types.Header, txs []*opstack.Transaction, whole *opstack.Result) {
	t.Helper()
	state := r.state.Clone()
	b, err := r.rules.Begin(header, r.state, r.ancestors)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for len(txs) > 0 {
		n := min(4, len(txs))
		diff, receipts, err := b.Apply(txs[:n])
		if err != nil {
			t.Fatal(err)
		}
		if err := state.Apply(diff); err != nil {
			t.Fatal(err)
		}
		txs, count = txs[n:], count+len(receipts)
	}
	diff, err := b.Diff()
	if err != nil {
		t.Fatal(err)
	}
	rest, outcome, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if !rest.Empty() || outcome.GasUsed != whole.GasUsed || outcome.Footprint != whole.Footprint || count != len(whole.Receipts) {
		t.Errorf("block %d in parts: rest %+v, outcome %+v, %d receipts", header.Number, rest, outcome, count)
	}
	if !reflect.DeepEqual(diff, whole.Diff) {
		t.Errorf("block %d in parts changes something else than in one", header.Number)
	}
	at := r.state.Clone()
	if err := at.Apply(whole.Diff); err != nil {
		t.Fatal(err)
	}
	for _, a := range whole.Diff.Accounts {
		got, err := state.Account(a.Address)
		want, wantErr := at.Account(a.Address)
		if err != nil || wantErr != nil || got != want {
			t.Errorf("block %d in parts: account %s is %+v, want %+v", header.Number, a.Address, got, want)
		}
	}
}

func writeRecord(t testing.TB, blocks [][]byte) {
	t.Helper()
	var packed bytes.Buffer
	out, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if err := rlp.Encode(out, blocks); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("testdata", recordedChain), packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readRecord(t testing.TB) (blocks [][]byte) {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", recordedChain))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	in, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := rlp.DecodeBytes(data, &blocks); err != nil {
		t.Fatal(err)
	}
	return blocks
}

// TestRecordedChain executes the chain that op-geth built in TestAgainstOpGeth,
// up to its state roots.
func TestRecordedChain(t *testing.T) {
	blocks := readRecord(t)
	if len(blocks) != chainLength+1 {
		t.Fatalf("%d blocks, want %d", len(blocks), chainLength+1)
	}
	r := newReplay(t, newRules(t, testConfig(t)), newWorld(t, recordedSeed).users, blocks[0])
	for _, raw := range blocks[1:] {
		r.step(t, raw)
	}
}
