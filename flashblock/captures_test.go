// SPDX-License-Identifier: Apache-2.0

package flashblock_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"

	"glimpse/flashblock"
	"glimpse/internal/fixture"
)

// Whatever is recorded must be understood, without exception: a file that is added
// is covered without being named here.
func TestEveryCapturedMessageDecodes(t *testing.T) {
	entries, err := os.ReadDir(fixture.Flashblocks(t))
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".jsonl") {
			continue
		}
		for i, line := range lines(t, entry.Name()) {
			m, err := flashblock.Decode(unpack(t, line))
			if err != nil {
				t.Errorf("%s line %d: %v", entry.Name(), i+1, err)
				continue
			}
			if m.Number == 0 || m.Payload == (flashblock.PayloadID{}) || m.Delta.GasUsed == 0 {
				t.Errorf("%s line %d decodes to %+v", entry.Name(), i+1, m)
			}
			count++
		}
	}
	if count < 40 {
		t.Errorf("%d messages were decoded, want 40", count)
	}
}

// unpack returns the message in a line, which may be compressed.
func unpack(t *testing.T, line []byte) []byte {
	t.Helper()
	var packed struct {
		Data string `json:"brotli_base64"`
	}
	if err := json.Unmarshal(line, &packed); err != nil {
		t.Fatal(err)
	}
	if packed.Data == "" {
		return line
	}
	data, err := base64.StdEncoding.DecodeString(packed.Data)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The capture of Unichain is of a real block: what was decoded makes, at each
// index, the receipts root and the block hash that came with it, and at the last
// the hash under which the block was sealed. So nothing is misread.
func TestCapturedBlockIsRecomputed(t *testing.T) {
	const sealed = "0xc463a3120c35268f610d969f5608b479332ef10953af77c7a6be806195831196"
	for _, name := range []string{"unichain_sepolia_35535698.full-metadata.jsonl", "unichain_sepolia_35535698.full-metadata.brotli.jsonl"} {
		t.Run(name, func(t *testing.T) {
			var header *types.Header
			var txs, receipts rawList
			var bloom types.Bloom
			for i, line := range lines(t, name) {
				m := decode(t, unpack(t, line))
				if m.Base != nil {
					header = capturedHeader(m)
				}
				for _, tx := range m.Delta.Transactions {
					r, ok := m.Receipts[crypto.Keccak256Hash(tx)]
					if !ok {
						t.Fatalf("index %d has no receipt of transaction %x", i, crypto.Keccak256(tx))
					}
					txs = append(txs, tx)
					receipts = append(receipts, consensusReceipt(t, r, &bloom))
					header.GasUsed = r.CumulativeGasUsed
				}
				header.TxHash = types.DeriveSha(txs, trie.NewStackTrie(nil))
				header.ReceiptHash = types.DeriveSha(receipts, trie.NewStackTrie(nil))
				header.Bloom = bloom
				header.Root = m.Delta.StateRoot
				header.WithdrawalsHash = &m.Delta.WithdrawalsRoot
				if header.ReceiptHash != m.Delta.ReceiptsRoot {
					t.Errorf("receipts root at index %d is %s, want %s", i, header.ReceiptHash, m.Delta.ReceiptsRoot)
				}
				if header.Hash() != m.Delta.BlockHash {
					t.Errorf("block hash at index %d is %s, want %s", i, header.Hash(), m.Delta.BlockHash)
				}
			}
			if header == nil || header.Hash().Hex() != sealed || len(txs) < 5 {
				t.Errorf("the block of %d transactions is not the one that was sealed", len(txs))
			}
		})
	}
}

func capturedHeader(m *flashblock.Message) *types.Header {
	b := m.Base
	return &types.Header{
		ParentHash: b.ParentHash, UncleHash: types.EmptyUncleHash, Coinbase: b.FeeRecipient, MixDigest: b.PrevRandao,
		Number: new(big.Int).SetUint64(uint64(m.Number)), GasLimit: b.GasLimit, Time: b.Time, Extra: b.ExtraData,
		BaseFee: b.BaseFee.ToBig(), Difficulty: new(big.Int), ParentBeaconRoot: &b.ParentBeaconRoot,
		BlobGasUsed: new(uint64), ExcessBlobGas: new(uint64), RequestsHash: &types.EmptyRequestsHash,
	}
}

// consensusReceipt returns a receipt as it is hashed, and adds its logs to the
// bloom. A deposit has two more members than go-ethereum's receipts.
func consensusReceipt(t *testing.T, r *flashblock.Receipt, sum *types.Bloom) []byte {
	t.Helper()
	const deposit = 0x7e
	var body struct {
		Succeeded bool
		Gas       uint64
		Bloom     types.Bloom
		Logs      []flashblock.Log
		Nonce     *uint64 `rlp:"optional"`
		Version   *uint64 `rlp:"optional"`
	}
	body.Succeeded, body.Gas, body.Logs, body.Nonce, body.Version = r.Succeeded, r.CumulativeGasUsed, r.Logs, r.DepositNonce, r.DepositVersion
	if (r.Type == deposit) != (r.DepositNonce != nil) {
		t.Errorf("receipt of type %#x with deposit nonce %v", r.Type, r.DepositNonce)
	}
	for _, l := range r.Logs {
		for _, data := range l.Topics {
			body.Bloom.Add(data[:])
			sum.Add(data[:])
		}
		body.Bloom.Add(l.Address[:])
		sum.Add(l.Address[:])
	}
	out, err := rlp.EncodeToBytes(&body)
	if err != nil {
		t.Fatal(err)
	}
	if r.Type != types.LegacyTxType {
		out = append([]byte{r.Type}, out...)
	}
	return out
}

type rawList [][]byte

func (l rawList) Len() int                             { return len(l) }
func (l rawList) EncodeIndex(i int, out *bytes.Buffer) { out.Write(l[i]) }

// The state of every captured flashblock is read without its receipts and
// balances.
func TestDecodeStateLeavesOutTheRest(t *testing.T) {
	for _, text := range lines(t, "unichain_sepolia_35535698.full-metadata.jsonl") {
		want := decode(t, text)
		if len(want.Receipts) == 0 || len(want.Balances) == 0 {
			t.Fatal("there is nothing to leave out")
		}
		want.Receipts, want.Balances = nil, nil
		got, err := flashblock.DecodeState(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("DecodeState = %+v (%v), want %+v", got, err, want)
		}
	}
}
