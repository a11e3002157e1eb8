// SPDX-License-Identifier: Apache-2.0

package opstack_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/holiman/uint256"

	"glimpse/chain"
	"glimpse/evm"
	"glimpse/evm/opstack"
	"glimpse/flashblock"
	"glimpse/internal/fixture"
)

func TestTransactionsKeepTheirBytes(t *testing.T) {
	for _, raw := range readRecord(t)[1:] {
		header, txs, err := opstack.DecodeBlock(raw)
		if err != nil {
			t.Fatal(err)
		}
		if root := types.DeriveSha(opstack.Transactions(txs), trie.NewStackTrie(nil)); root != header.TxHash {
			t.Errorf("block %d: transactions root %s, want %s", header.Number, root, header.TxHash)
		}
		for i, tx := range txs {
			again := tx
			if d, ok := tx.Deposit(); ok {
				again, err = opstack.NewDeposit(d)
			} else if signed, ok := tx.Signed(); ok {
				again, err = opstack.NewSigned(signed)
			}
			if err != nil || !bytes.Equal(again.Raw(), tx.Raw()) || again.Hash() != tx.Hash() || again.Type() != tx.Type() {
				t.Errorf("block %d, transaction %d: encodes as %x (%v), was %x", header.Number, i, again.Raw(), err, tx.Raw())
			}
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	deposit := newWorld(t, 1).deposit(&opstack.Deposit{To: &storer, Mint: uint256.NewInt(5), Gas: 1, Data: []byte{1, 2, 3}}).Raw()
	for _, tt := range []struct {
		name        string
		raw         []byte
		unsupported bool
	}{
		{"nothing", nil, false},
		{"a type that is not known", []byte{0x7c, 0xc0}, true},
		{"a deposit without fields", []byte{opstack.DepositType, 0xc0}, false},
		{"bytes after a deposit", append(bytes.Clone(deposit), 0), false},
		{"half a deposit", deposit[:len(deposit)/2], false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tx, err := opstack.DecodeTransaction(tt.raw)
			if err == nil || errors.Is(err, evm.ErrUnsupported) != tt.unsupported {
				t.Errorf("got %v, %v", tx, err)
			}
		})
	}
}

func TestParseTransaction(t *testing.T) {
	w := newWorld(t, 1)
	to := storer
	whole := &opstack.Deposit{SourceHash: chain.Hash{1}, From: chain.Address{2}, To: &to, Mint: uint256.NewInt(5), Value: uint256.NewInt(6), Gas: 7, Data: []byte{8}}
	bare := &opstack.Deposit{SourceHash: chain.Hash{1}, From: chain.Address{2}, Value: new(uint256.Int)}
	const source = `"sourceHash":"0x0100000000000000000000000000000000000000000000000000000000000000","from":"0x0200000000000000000000000000000000000000",`
	signed := w.send(&storer, 5, 50_000, []byte{1})
	inner, _ := signed.Signed()
	signedText, err := json.Marshal(inner)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		text string
		want *opstack.Transaction
	}{
		{"a deposit", `{"type":"0x7e",` + source + `"to":"` + to.Hex() + `","mint":"0x5","value":"0x6","gas":"0x7","input":"0x08","nonce":"0x9","r":"0x0"}`, w.deposit(whole)},
		{"a deposit that mints null", `{"type":"0x7e",` + source + `"to":null,"mint":null,"value":"0x0","gas":"0x0","input":"0x"}`, w.deposit(bare)},
		{"a deposit that mints zero", `{"type":"0x7e",` + source + `"mint":"0x0","value":"0x0","gas":"0x0","input":"0x"}`, w.deposit(bare)},
		{"a signed one", string(signedText), signed},
		{"a post-execution one", `{"type":"0x7d","input":"` + hexutil.Encode(postExecution(t, 3, [2]uint64{1, 2}).Raw()[1:]) + `"}`, postExecution(t, 3, [2]uint64{1, 2})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := opstack.ParseTransaction([]byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Raw(), tt.want.Raw()) || got.Hash() != tt.want.Hash() {
				t.Errorf("got %x, want %x", got.Raw(), tt.want.Raw())
			}
		})
	}
	for name, text := range map[string]string{
		"not JSON":                   `{`,
		"a deposit without a source": `{"type":"0x7e","from":"0x0200000000000000000000000000000000000000","value":"0x0","gas":"0x0","input":"0x"}`,
		"another hash":               strings.Replace(string(signedText), signed.Hash().Hex(), chain.Hash{}.Hex(), 1),
	} {
		t.Run(name, func(t *testing.T) {
			if tx, err := opstack.ParseTransaction([]byte(text)); err == nil {
				t.Errorf("got %v", tx)
			}
		})
	}
}

// TestRecordedFlashblocks decodes the transactions of recorded feeds, and
// computes the receipts root and the block hash of the ones that tell receipts.
func TestRecordedFlashblocks(t *testing.T) {
	dir := fixture.Flashblocks(t)
	for _, name := range []string{"unichain_sepolia_35535698.full-metadata.jsonl", "base_sepolia_33439826.messages.jsonl"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			var txs []*opstack.Transaction
			var receipts opstack.Receipts
			var header *types.Header
			for line := range bytes.Lines(text) {
				m, err := flashblock.Decode(line)
				if err != nil {
					t.Fatal(err)
				}
				added, err := opstack.DecodeTransactions(m.Delta.Transactions)
				if err != nil {
					t.Fatal(err)
				}
				txs = append(txs, added...)
				if len(m.Receipts) == 0 {
					continue
				}
				if m.Index == 0 {
					header = headerOf(m)
				}
				for _, tx := range added {
					receipts = append(receipts, receiptOf(tx, m.Receipts[tx.Hash()]))
				}
				checkFlashblock(t, m, header, txs, receipts)
			}
		})
	}
}

func receiptOf(tx *opstack.Transaction, told *flashblock.Receipt) *opstack.Receipt {
	common := &types.Receipt{Type: tx.Type(), CumulativeGasUsed: told.CumulativeGasUsed}
	if told.Succeeded {
		common.Status = types.ReceiptStatusSuccessful
	}
	for _, l := range told.Logs {
		common.Logs = append(common.Logs, &types.Log{Address: l.Address, Topics: l.Topics, Data: l.Data})
	}
	common.Bloom = types.CreateBloom(common)
	return &opstack.Receipt{Common: common, DepositNonce: told.DepositNonce, DepositVersion: told.DepositVersion}
}

func headerOf(m *flashblock.Message) *types.Header {
	return &types.Header{
		ParentHash: m.Base.ParentHash, Coinbase: m.Base.FeeRecipient, Number: uint256.NewInt(uint64(m.Number)).ToBig(),
		GasLimit: m.Base.GasLimit, Time: m.Base.Time, Extra: m.Base.ExtraData, MixDigest: m.Base.PrevRandao,
		BaseFee: m.Base.BaseFee.ToBig(), ParentBeaconRoot: &m.Base.ParentBeaconRoot,
	}
}

func checkFlashblock(t *testing.T, m *flashblock.Message, header *types.Header, txs []*opstack.Transaction, receipts opstack.Receipts) {
	t.Helper()
	if root := types.DeriveSha(receipts, trie.NewStackTrie(nil)); root != m.Delta.ReceiptsRoot {
		t.Errorf("index %d: receipts root %s, want %s", m.Index, root, m.Delta.ReceiptsRoot)
	}
	// The testnet's times of forks differ, but not its order, and the block is
	// of the same fork.
	config := opstack.Unichain()
	config.Forks.Jovian, config.Forks.Karst = nil, nil
	h := types.CopyHeader(header)
	newRules(t, config).Complete(h)
	h.Root, h.ReceiptHash, h.Bloom, h.GasUsed = m.Delta.StateRoot, m.Delta.ReceiptsRoot, m.Delta.LogsBloom, m.Delta.GasUsed
	h.TxHash = types.DeriveSha(opstack.Transactions(txs), trie.NewStackTrie(nil))
	h.WithdrawalsHash = &m.Delta.WithdrawalsRoot
	if h.Hash() != m.Delta.BlockHash {
		t.Errorf("index %d: block hash %s, want %s", m.Index, h.Hash(), m.Delta.BlockHash)
	}
}

func FuzzDecodeTransaction(f *testing.F) {
	w := newWorld(f, 1)
	f.Add(w.attributes(40).Raw())
	f.Add(w.send(&storer, 1, 50_000, []byte{1}).Raw())
	f.Add([]byte{opstack.PostExecutionType, 0xc6, 1, 1, 0xc3, 0xc2, 1, 1})
	f.Fuzz(func(t *testing.T, raw []byte) {
		tx, err := opstack.DecodeTransaction(raw)
		if err != nil {
			return
		}
		if tx.Hash() != crypto.Keccak256Hash(raw) {
			t.Errorf("%x has hash %s", raw, tx.Hash())
		}
		if d, ok := tx.Deposit(); ok {
			if again, err := opstack.NewDeposit(d); err != nil || !bytes.Equal(again.Raw(), raw) {
				t.Errorf("%x encodes as %x (%v)", raw, again.Raw(), err)
			}
		}
	})
}
