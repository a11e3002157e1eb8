// SPDX-License-Identifier: Apache-2.0

package ethapi_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"glimpse/chain"
	"glimpse/ethapi"
)

var senderKey, _ = crypto.ToECDSA(crypto.Keccak256([]byte("sender"))) // a valid key, see any test that signs

// fakeSequencer accepts what it is sent, and promises it in what the fake
// snapshot shows, unless it is told otherwise.
type fakeSequencer struct {
	snapshot *fake
	sent     []*types.Transaction
	refuse   error
	lost     bool // what is accepted is never promised
}

func (q *fakeSequencer) Send(_ context.Context, tx *types.Transaction) error {
	if q.refuse != nil {
		return q.refuse
	}
	q.sent = append(q.sent, tx)
	return nil
}

func (q *fakeSequencer) WaitPreconfirmed(ctx context.Context, hash chain.Hash) error {
	if q.lost {
		<-ctx.Done()
		return ctx.Err()
	}
	tx := q.sent[len(q.sent)-1]
	q.snapshot.pending = preconfirmed(tx)
	return nil
}

func (q *fakeSequencer) Waiting(_ context.Context, hash chain.Hash) (*types.Transaction, bool, error) {
	for _, tx := range q.sent {
		if tx.Hash() == hash {
			return tx, true, nil
		}
	}
	return nil, false, nil
}

func (q *fakeSequencer) NextNonce(context.Context, chain.Address) (uint64, error) { return 9, nil }

func (q *fakeSequencer) Accounts() []chain.Address {
	return []chain.Address{crypto.PubkeyToAddress(senderKey.PublicKey)}
}

func (q *fakeSequencer) Sign(from chain.Address, tx types.TxData) (*types.Transaction, error) {
	if from != q.Accounts()[0] {
		return nil, &ethapi.Refusal{Message: "unknown account"}
	}
	return types.SignNewTx(senderKey, types.LatestSignerForChainID(big.NewInt(31337)), tx)
}

// preconfirmed is a block with one transaction on top of the fake's.
func preconfirmed(tx *types.Transaction) *chain.Preconfirmed {
	header := &types.Header{Number: big.NewInt(6), Difficulty: new(big.Int), BaseFee: big.NewInt(7), Time: 100, GasUsed: 21000}
	receipt := &types.Receipt{
		Status: types.ReceiptStatusSuccessful, GasUsed: 21000, CumulativeGasUsed: 21000,
		EffectiveGasPrice: big.NewInt(8), TxHash: tx.Hash(), BlockNumber: header.Number,
	}
	return &chain.Preconfirmed{Header: header, Index: 3, Hashes: []chain.Hash{tx.Hash()}, Transactions: []*types.Transaction{tx}, Receipts: []*types.Receipt{receipt}}
}

func sequencing(f *fake) (*fakeSequencer, func(*ethapi.Config)) {
	q := &fakeSequencer{snapshot: f}
	return q, func(c *ethapi.Config) { c.Sequencer = q }
}

func signedTransfer(t *testing.T) (raw string, tx *types.Transaction) {
	t.Helper()
	to := common.Address{19: 1}
	tx, err := types.SignNewTx(senderKey, types.LatestSignerForChainID(big.NewInt(31337)), &types.DynamicFeeTx{
		ChainID: big.NewInt(31337), Nonce: 4, To: &to, Gas: 21000, GasFeeCap: big.NewInt(50), GasTipCap: big.NewInt(1), Value: big.NewInt(2),
	})
	if err != nil {
		t.Fatal(err)
	}
	data, err := tx.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return hexutil.Encode(data), tx
}

func TestSendRawTransaction(t *testing.T) {
	f := new(fake)
	q, with := sequencing(f)
	raw, tx := signedTransfer(t)
	got, bad := callWith(t, f, with, "eth_sendRawTransaction", `["`+raw+`"]`)
	if bad != nil || got != `"`+tx.Hash().Hex()+`"` || len(q.sent) != 1 || q.sent[0].Hash() != tx.Hash() {
		t.Errorf("got %s, %v with %d sent, want the hash of the one that was sent", got, bad, len(q.sent))
	}
	q.refuse = &ethapi.Refusal{Message: "nonce too low: next nonce 5, tx nonce 4"}
	if _, bad := callWith(t, f, with, "eth_sendRawTransaction", `["`+raw+`"]`); bad == nil || bad.Code != -32000 || bad.Message != q.refuse.Error() {
		t.Errorf("a refusal gives %v, want -32000 with its text", bad)
	}
	q.refuse = errors.New("disk on fire at /var/secret")
	if _, bad := callWith(t, f, with, "eth_sendRawTransaction", `["`+raw+`"]`); bad == nil || bad.Code != -32603 || strings.Contains(bad.Message, "secret") {
		t.Errorf("a failure gives %v, want -32603 without its text", bad)
	}
	for _, params := range []string{`[]`, `["0x"]`, `["0x02ff"]`, `["` + raw + `00"]`, `[7]`} {
		if _, bad := callWith(t, f, with, "eth_sendRawTransaction", params); bad == nil || bad.Code != -32602 {
			t.Errorf("%s gives %v, want -32602", params, bad)
		}
	}
}

func TestSendRawTransactionSyncAnswersWithTheReceipt(t *testing.T) {
	f := new(fake)
	q, with := sequencing(f)
	raw, tx := signedTransfer(t)
	got, bad := callWith(t, f, with, "eth_sendRawTransactionSync", `["`+raw+`"]`)
	if bad != nil || !strings.Contains(got, `"transactionHash":"`+tx.Hash().Hex()+`"`) || !strings.Contains(got, `"blockNumber":"0x6"`) {
		t.Errorf("got %s, %v, want the receipt", got, bad)
	}
	q.lost = true
	start := time.Now()
	_, bad = callWith(t, f, with, "eth_sendRawTransactionSync", `["`+raw+`",30]`)
	if bad == nil || bad.Code != 4 || string(bad.Data) != `"`+tx.Hash().Hex()+`"` {
		t.Errorf("a wait in vain gives %v, want code 4 with the hash", bad)
	}
	if took := time.Since(start); took < 30*time.Millisecond {
		t.Errorf("it waited %v, want 30 ms", took)
	}
	for _, wait := range []string{`60001`, `-1`, `"x"`} {
		if _, bad := callWith(t, f, with, "eth_sendRawTransactionSync", `["`+raw+`",`+wait+`]`); bad == nil || bad.Code != -32602 {
			t.Errorf("a wait of %s gives %v, want -32602", wait, bad)
		}
	}
}

func TestSendTransactionFillsIn(t *testing.T) {
	from := crypto.PubkeyToAddress(senderKey.PublicKey)
	tests := []struct {
		name, object string
		kind         uint8
		check        func(*types.Transaction) bool
	}{
		{"nonce and fees", `"gas":"0x5208","to":"` + contract + `"`, types.DynamicFeeTxType,
			func(tx *types.Transaction) bool { return tx.Nonce() == 9 && tx.GasFeeCap().Sign() > 0 }},
		{"nothing that is there", `"gas":"0x5208","nonce":"0x3","maxFeePerGas":"0x64","maxPriorityFeePerGas":"0x2","value":"0x5"`, types.DynamicFeeTxType,
			func(tx *types.Transaction) bool {
				return tx.Nonce() == 3 && tx.GasFeeCap().Int64() == 100 && tx.GasTipCap().Int64() == 2 && tx.Value().Int64() == 5
			}},
		{"a legacy one by its price", `"gas":"0x5208","gasPrice":"0x64"`, types.LegacyTxType,
			func(tx *types.Transaction) bool { return tx.GasPrice().Int64() == 100 }},
		{"one with an access list and a price", `"gas":"0x5208","gasPrice":"0x64","accessList":[]`, types.AccessListTxType,
			func(tx *types.Transaction) bool { return tx.GasPrice().Int64() == 100 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := new(fake)
			q, with := sequencing(f)
			_, bad := callWith(t, f, with, "eth_sendTransaction", fmt.Sprintf(`[{"from":"%s",%s}]`, from.Hex(), tt.object))
			if bad != nil || len(q.sent) != 1 {
				t.Fatalf("got %v with %d sent", bad, len(q.sent))
			}
			if tx := q.sent[0]; tx.Type() != tt.kind || !tt.check(tx) {
				t.Errorf("sent type %d, nonce %d, fees %v and %v, value %v", tx.Type(), tx.Nonce(), tx.GasFeeCap(), tx.GasTipCap(), tx.Value())
			}
		})
	}
	for name, object := range map[string]string{
		"a stranger's":           `"from":"` + contract + `","gas":"0x5208"`,
		"two kinds of price":     `"from":"` + from.Hex() + `","gas":"0x5208","gasPrice":"0x1","maxFeePerGas":"0x1"`,
		"a tip above the cap":    `"from":"` + from.Hex() + `","gas":"0x5208","maxFeePerGas":"0x1","maxPriorityFeePerGas":"0x2"`,
		"blobs without the blob": `"from":"` + from.Hex() + `","gas":"0x5208","blobVersionedHashes":[],"maxFeePerBlobGas":"0x1"`,
	} {
		f := new(fake)
		_, with := sequencing(f)
		if got, bad := callWith(t, f, with, "eth_sendTransaction", "[{"+object+"}]"); bad == nil || bad.Code != -32000 {
			t.Errorf("%s: got %s, %v, want -32000", name, got, bad)
		}
	}
}

func TestFillTransaction(t *testing.T) {
	f := new(fake)
	q, with := sequencing(f)
	got, bad := callWith(t, f, with, "eth_fillTransaction", `[{"from":"`+contract+`","gas":"0x5208","to":"`+contract+`"}]`)
	if bad != nil || !strings.Contains(got, `"raw":"0x02`) || !strings.Contains(got, `"nonce":"0x9"`) || len(q.sent) != 0 {
		t.Errorf("got %s, %v with %d sent, want it filled in and not sent", got, bad, len(q.sent))
	}
}

// All methods see a pre-confirmed transaction in the same block, which is the one
// of the state.
func TestPreconfirmedBlock(t *testing.T) {
	_, tx := signedTransfer(t)
	hash := tx.Hash().Hex()
	f := &fake{pending: preconfirmed(tx)}
	tests := []struct {
		name, method, params string
		want                 []string
	}{
		{"block with hashes", "eth_getBlockByNumber", `["pending",false]`, []string{`"number":"0x6"`, `"hash":null`, `"transactions":["` + hash + `"]`}},
		{"block with transactions", "eth_getBlockByNumber", `["pending",true]`, []string{`"blockNumber":"0x6"`, `"hash":"` + hash + `"`}},
		{"latest is still the sealed one", "eth_getBlockByNumber", `["latest",false]`, []string{`"number":"0x5"`}},
		{"count", "eth_getBlockTransactionCountByNumber", `["pending"]`, []string{`"0x1"`}},
		{"transaction", "eth_getTransactionByHash", `["` + hash + `"]`, []string{`"blockNumber":"0x6"`, `"transactionIndex":"0x0"`, `"gasPrice":"0x8"`}},
		{"transaction by index", "eth_getTransactionByBlockNumberAndIndex", `["pending","0x0"]`, []string{`"hash":"` + hash + `"`}},
		{"receipt", "eth_getTransactionReceipt", `["` + hash + `"]`, []string{`"blockNumber":"0x6"`, `"status":"0x1"`, `"blockHash":"0x0000000000000000000000000000000000000000000000000000000000000000"`}},
		{"receipts of the block", "eth_getBlockReceipts", `["pending"]`, []string{`"transactionHash":"` + hash + `"`}},
		{"its number is not a block yet", "eth_getBlockByNumber", `["0x6",false]`, []string{`null`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, bad := call(t, f, tt.method, tt.params)
			if bad != nil {
				t.Fatal(bad)
			}
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("%s%s\n got %s\nwant %s", tt.method, tt.params, got, want)
				}
			}
		})
	}
}

func TestWaitingTransactionIsNowhere(t *testing.T) {
	f := new(fake)
	q, with := sequencing(f)
	_, tx := signedTransfer(t)
	q.sent = append(q.sent, tx)
	got, bad := callWith(t, f, with, "eth_getTransactionByHash", `["`+tx.Hash().Hex()+`"]`)
	if bad != nil || !strings.Contains(got, `"blockNumber":null`) || !strings.Contains(got, `"gasPrice":"0x32"`) {
		t.Errorf("got %s, %v, want it without a block, at its cap", got, bad)
	}
	if got, bad := callWith(t, f, with, "eth_getTransactionReceipt", `["`+tx.Hash().Hex()+`"]`); bad != nil || got != "null" {
		t.Errorf("its receipt is %s, %v, want null", got, bad)
	}
}
