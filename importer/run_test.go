// SPDX-License-Identifier: Apache-2.0

package importer_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"

	"glimpse/chain"
	"glimpse/evm"
	"glimpse/importer"
	"glimpse/internal/fixture"
)

func TestImportConformanceChain(t *testing.T) {
	dir := fixture.Conformance(t)
	genesis, err := os.ReadFile(filepath.Join(dir, "genesis.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, verify := range []importer.Verify{importer.VerifyRoot, importer.VerifyReceipts, importer.VerifyOff} {
		t.Run(verify.String(), func(t *testing.T) {
			s, rules := newStore(t, genesis)
			var last importer.Progress
			o := importer.Options{Verify: verify, Roots: s.tries, Progress: func(p importer.Progress) { last = p }}
			if err := importer.Run(t.Context(), s, rules, []string{filepath.Join(dir, "chain.rlp")}, o); err != nil {
				t.Fatal(err)
			}
			if last.Block != s.head() || last.Blocks != 54 || last.Transactions != 249 || last.BytesRead != last.BytesTotal {
				t.Errorf("got %+v, want 54 blocks, 249 transactions and all bytes", last)
			}
			if len(s.blocks) != 55 {
				t.Errorf("got %d blocks stored, want 55", len(s.blocks))
			}
		})
	}
}

func TestImportFilesInAnyForm(t *testing.T) {
	genesis, blocks := generated(1, 30)
	tests := []struct {
		name  string
		files [][]byte
	}{
		{"one plain file", [][]byte{encode(t, blocks...)}},
		{"one compressed file", [][]byte{compress(t, encode(t, blocks...))}},
		{"compressed in two members", [][]byte{append(compress(t, encode(t, blocks[:9]...)), compress(t, encode(t, blocks[9:]...))...)}},
		{"several files, one empty", [][]byte{encode(t, blocks[:7]...), {}, compress(t, encode(t, blocks[7:]...))}},
		{"overlapping files", [][]byte{encode(t, blocks[:20]...), encode(t, blocks[10:]...)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, rules := newStore(t, genesis)
			var files []string
			for _, data := range tt.files {
				files = append(files, writeFile(t, "blocks", data))
			}
			var last importer.Progress
			o := importer.Options{Roots: s.tries, Progress: func(p importer.Progress) { last = p }}
			if err := importer.Run(t.Context(), s, rules, files, o); err != nil {
				t.Fatal(err)
			}
			if s.head().Hash != blocks[29].Hash() || last.Blocks != 30 || last.BytesRead != last.BytesTotal {
				t.Errorf("got head %s, %+v, want block 30", s.head(), last)
			}
			if err := importer.Run(t.Context(), s, rules, files, o); err != nil {
				t.Fatal(err)
			}
			if last.Blocks != 0 || last.Skipped < 30 || len(s.blocks) != 31 {
				t.Errorf("got %+v the second time, want everything skipped", last)
			}
		})
	}
}

func TestGenesisInTheFileIsSkipped(t *testing.T) {
	text, blocks := generated(2, 3)
	g, err := evm.ParseGenesis(text)
	if err != nil {
		t.Fatal(err)
	}
	s, rules := newStore(t, text)
	file := writeFile(t, "blocks", encode(t, append([]*types.Block{g.Block}, blocks...)...))
	if err := importer.Run(t.Context(), s, rules, []string{file}, importer.Options{Roots: s.tries}); err != nil {
		t.Fatal(err)
	}
	if s.head().Number != 3 {
		t.Errorf("got head %s, want block 3", s.head())
	}
}

// The first bad block ends the import; what is before it stays.
func TestBadBlockStopsTheImport(t *testing.T) {
	genesis, blocks := generated(3, 12)
	wrongRoot := changed(blocks[7], func(h *types.Header) { h.Root[0] ^= 1 })
	wrongCoinbase := changed(blocks[7], func(h *types.Header) { h.Coinbase[5] ^= 1 })
	wrongReceipts := changed(blocks[7], func(h *types.Header) { h.ReceiptHash[0] ^= 1 })
	wrongTx := changed(blocks[7], func(h *types.Header) { h.TxHash[0] ^= 1 })
	twice := twiceTheFirst(t, blocks[7])
	tests := []struct {
		name     string
		block    *types.Block
		what     string
		accepted map[importer.Verify]bool
	}{
		{"state root", wrongRoot, "state root", map[importer.Verify]bool{importer.VerifyReceipts: true, importer.VerifyOff: true}},
		{"another coinbase", wrongCoinbase, "state root", map[importer.Verify]bool{importer.VerifyReceipts: true, importer.VerifyOff: true}},
		{"receipts root", wrongReceipts, "receipts root", map[importer.Verify]bool{importer.VerifyOff: true}},
		{"transactions root", wrongTx, "transactions root", nil},
		{"a transaction twice", twice, "transaction 1", nil},
	}
	for _, tt := range tests {
		for _, verify := range []importer.Verify{importer.VerifyRoot, importer.VerifyReceipts, importer.VerifyOff} {
			t.Run(tt.name+", verify "+verify.String(), func(t *testing.T) {
				s, rules := newStore(t, genesis)
				file := writeFile(t, "blocks", append(encode(t, blocks[:7]...), encode(t, tt.block)...))
				err := importer.Run(t.Context(), s, rules, []string{file}, importer.Options{Verify: verify, Roots: s.tries})
				if tt.accepted[verify] {
					if err != nil || s.head().Number != 8 {
						t.Fatalf("got head %s, %v, want block 8", s.head(), err)
					}
					return
				}
				invalid := new(evm.InvalidBlockError)
				if !errors.As(err, &invalid) || !strings.HasPrefix(invalid.What, tt.what) || invalid.Ref.Number != 8 {
					t.Errorf("got %v, want block 8 refused for its %s", err, tt.what)
				}
				if s.head().Number != 7 {
					t.Errorf("got head %s, want block 7", s.head())
				}
				if verify != importer.VerifyRoot {
					return // the tries were left behind
				}
				good := writeFile(t, "good", encode(t, blocks...))
				if err := importer.Run(t.Context(), s, rules, []string{good}, importer.Options{Roots: s.tries}); err != nil {
					t.Errorf("got %v for the good blocks afterwards", err)
				}
			})
		}
	}
}

// twiceTheFirst is a block that is right but for its first transaction, which
// is there twice.
func twiceTheFirst(t *testing.T, b *types.Block) *types.Block {
	t.Helper()
	if len(b.Transactions()) == 0 {
		t.Fatal("the block has no transactions; take another seed")
	}
	header, body := b.Header(), *b.Body()
	body.Transactions = append([]*types.Transaction{body.Transactions[0]}, body.Transactions...)
	header.TxHash = types.DeriveSha(types.Transactions(body.Transactions), trie.NewStackTrie(nil))
	*header.BlobGasUsed += body.Transactions[0].BlobGas()
	return types.NewBlockWithHeader(header).WithBody(body)
}

func TestBlockThatDoesNotFollow(t *testing.T) {
	genesis, blocks := generated(4, 6)
	other := changed(blocks[1], func(h *types.Header) { h.Extra = []byte("other") })
	orphan := changed(blocks[2], func(h *types.Header) { h.ParentHash = other.Hash() })
	tests := []struct {
		name   string
		blocks []*types.Block
		bad    *types.Block
		stored chain.Number
	}{
		{"a gap", []*types.Block{blocks[0], blocks[3]}, blocks[3], 1},
		{"another branch, stored height", []*types.Block{blocks[0], blocks[1], blocks[2], other}, other, 2},
		{"a parent that is not the head", []*types.Block{blocks[0], blocks[1], orphan}, orphan, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, rules := newStore(t, genesis)
			file := writeFile(t, "blocks", encode(t, tt.blocks...))
			err := importer.Run(t.Context(), s, rules, []string{file}, importer.Options{Roots: s.tries})
			gap := new(importer.NotNextError)
			if !errors.As(err, &gap) || gap.Block.Hash != tt.bad.Hash() || gap.Stored != s.blocks[tt.stored].Ref {
				t.Fatalf("got %v, want %s and %s named", err, tt.bad.Hash(), s.blocks[tt.stored].Ref)
			}
			for _, hash := range []string{tt.bad.Hash().Hex(), s.blocks[tt.stored].Hash.Hex()} {
				if !strings.Contains(err.Error(), hash) {
					t.Errorf("got %q, want %s in it", err, hash)
				}
			}
		})
	}
}

func TestEndAtABlock(t *testing.T) {
	genesis, blocks := generated(5, 10)
	tests := []struct {
		name string
		head chain.Selector
		want chain.Number
		err  error
	}{
		{"a number", chain.ByNumber(4), 4, nil},
		{"a hash", chain.ByHash(blocks[5].Hash()), 6, nil},
		{"genesis", chain.ByNumber(0), 0, nil},
		{"a number that is not reached", chain.ByNumber(11), 10, importer.ErrEndNotReached},
		{"a hash that is not there", chain.ByHash(chain.Hash{1}), 10, importer.ErrEndNotReached},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, rules := newStore(t, genesis)
			files := []string{writeFile(t, "blocks", encode(t, blocks...))}
			o := importer.Options{Roots: s.tries, Head: tt.head}
			for range 2 { // the second time from where the first ended
				if err := importer.Run(t.Context(), s, rules, files, o); !errors.Is(err, tt.err) {
					t.Errorf("got %v, want %v", err, tt.err)
				}
				if s.head().Number != tt.want {
					t.Errorf("got head %s, want block %d", s.head(), tt.want)
				}
			}
		})
	}
	s, rules := newStore(t, genesis)
	if err := importer.Run(t.Context(), s, rules, nil, importer.Options{Roots: s.tries, Head: chain.Safe}); err == nil {
		t.Error("got no error for a tag")
	}
	if err := importer.Run(t.Context(), s, rules, nil, importer.Options{}); err == nil {
		t.Error("got no error for roots without tries")
	}
}

func TestCancelStopsBetweenBlocks(t *testing.T) {
	genesis, blocks := generated(6, 20)
	s, rules := newStore(t, genesis)
	ctx, cancel := context.WithCancel(t.Context())
	o := importer.Options{Roots: s.tries, Progress: func(p importer.Progress) {
		if p.Block.Number == 5 {
			cancel()
		}
	}}
	files := []string{writeFile(t, "blocks", encode(t, blocks...))}
	if err := importer.Run(ctx, s, rules, files, o); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if s.head().Number != 5 {
		t.Errorf("got head %s, want block 5", s.head())
	}
	if err := importer.Run(t.Context(), s, rules, files, o); err != nil || s.head().Number != 20 {
		t.Errorf("got head %s, %v, want to go on to block 20", s.head(), err)
	}
}

func TestFailedCommitStops(t *testing.T) {
	genesis, blocks := generated(7, 6)
	s, rules := newStore(t, genesis)
	s.failAt = 4
	files := []string{writeFile(t, "blocks", encode(t, blocks...))}
	err := importer.Run(t.Context(), s, rules, files, importer.Options{Roots: s.tries})
	if !errors.Is(err, errCommit) || s.head().Number != 3 {
		t.Errorf("got head %s, %v, want block 3 and the store's error", s.head(), err)
	}
}

// What is stored of receipts is enough to give all of them back, as the header
// commits to them.
func TestReceiptsAreStored(t *testing.T) {
	genesis, blocks := generated(11, 20)
	s, rules := newStore(t, genesis)
	file := writeFile(t, "blocks", encode(t, blocks...))
	if err := importer.Run(t.Context(), s, rules, []string{file}, importer.Options{Roots: s.tries}); err != nil {
		t.Fatal(err)
	}
	logs := 0
	for i, stored := range s.blocks {
		var slim []*types.ReceiptForStorage
		if err := rlp.DecodeBytes(stored.Receipts, &slim); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if len(slim) != 0 || len(stored.Transactions) != 0 {
				t.Errorf("genesis: got %d receipts, %d transactions, want none", len(slim), len(stored.Transactions))
			}
			continue
		}
		block, receipts := blocks[i-1], make(types.Receipts, len(slim))
		for k, r := range slim {
			receipts[k] = (*types.Receipt)(r)
			logs += len(r.Logs)
		}
		err := receipts.DeriveFields(rules.Config(), block.Hash(), block.NumberU64(), block.Time(), block.BaseFee(), nil, block.Transactions())
		if err != nil {
			t.Fatal(err)
		}
		if got := types.DeriveSha(receipts, trie.NewStackTrie(nil)); got != block.ReceiptHash() {
			t.Errorf("block %d: got receipts root %s, want %s", i, got, block.ReceiptHash())
		}
		for k, tx := range block.Transactions() {
			if stored.Transactions[k] != tx.Hash() {
				t.Errorf("transaction %d of block %d: got %s, want %s", k, i, stored.Transactions[k], tx.Hash())
			}
		}
	}
	if logs == 0 {
		t.Error("the chain has no logs: the test shows nothing")
	}
}

func TestNewBlockRefusesAMissingReceipt(t *testing.T) {
	_, blocks := generated(11, 20)
	for _, b := range blocks {
		if len(b.Transactions()) == 0 {
			continue
		}
		if _, err := importer.NewBlock(b, nil, new(chain.Diff)); err == nil {
			t.Errorf("block %d without receipts: got no error", b.NumberU64())
		}
		return
	}
	t.Fatal("no block has a transaction")
}
