// SPDX-License-Identifier: Apache-2.0

package test

import (
	"crypto/ecdsa"
	"encoding/json"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// devKeys are the first accounts of the well-known test mnemonic.
var devKeys = []string{
	"ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
	"59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
	"5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
	"7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
	"47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
}

var devChainID = big.NewInt(31337)

// The cell is a contract whose constructor sets slot 0 to 42. Called with 32
// bytes it stores them there, called without it returns them.
var (
	cellCode = common.FromHex("0x36600c575f545f5260205ff35b5f355f5500")
	cellInit = append(common.FromHex("0x602a5f556012600e5f3960125ff3"), cellCode...)
)

// A wallet signs for one account and counts its nonces.
type wallet struct {
	key   *ecdsa.PrivateKey
	addr  common.Address
	nonce uint64
}

func newWallet(t testing.TB, index int) *wallet {
	t.Helper()
	key, err := crypto.HexToECDSA(devKeys[index])
	if err != nil {
		t.Fatal(err)
	}
	return &wallet{key: key, addr: crypto.PubkeyToAddress(key.PublicKey)}
}

// sign signs the transaction that comes next.
func (w *wallet) sign(t testing.TB, to *common.Address, data []byte) *types.Transaction {
	t.Helper()
	return w.signAs(t, &types.DynamicFeeTx{
		ChainID: devChainID, Nonce: w.nonce, To: to, Data: data, Gas: 500_000,
		GasFeeCap: big.NewInt(20_000_000_000), GasTipCap: big.NewInt(1_000_000_000),
	})
}

func (w *wallet) signAs(t testing.TB, inner types.TxData) *types.Transaction {
	t.Helper()
	tx, err := types.SignNewTx(w.key, types.LatestSignerForChainID(devChainID), inner)
	if err != nil {
		t.Fatal(err)
	}
	w.nonce++
	return tx
}

// send sends a transaction that must be accepted.
func send(t testing.TB, url string, tx *types.Transaction) common.Hash {
	t.Helper()
	raw, err := tx.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var hash common.Hash
	mustDecode(t, call(t, url, "eth_sendRawTransaction", hexutil.Bytes(raw)), &hash)
	return hash
}

// deployCell deploys a cell and returns where it will be.
func deployCell(t testing.TB, url string, w *wallet) common.Address {
	t.Helper()
	addr := crypto.CreateAddress(w.addr, w.nonce)
	send(t, url, w.sign(t, nil, cellInit))
	return addr
}

func slotAt(t testing.TB, url string, addr common.Address, tag string) uint64 {
	t.Helper()
	return slotValue(t, call(t, url, "eth_getStorageAt", addr, "0x0", tag))
}

// slotValue reads a small number from the result of eth_getStorageAt.
func slotValue(t testing.TB, result json.RawMessage) uint64 {
	t.Helper()
	var value common.Hash
	mustDecode(t, result, &value)
	return value.Big().Uint64()
}

// slotsAt reads slot 0 on pending and on latest, of one snapshot.
func slotsAt(t testing.TB, url string, addr common.Address) (pending, latest uint64) {
	t.Helper()
	calls := []rpcCall{
		{"2.0", 0, "eth_getStorageAt", []any{addr, "0x0", "pending"}},
		{"2.0", 1, "eth_getStorageAt", []any{addr, "0x0", "latest"}},
	}
	body, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	answers, err := ask(t, url, body, calls)
	if err != nil {
		t.Fatal(err)
	}
	return slotValue(t, answers[0].Result), slotValue(t, answers[1].Result)
}

func height(t testing.TB, url string) uint64 {
	t.Helper()
	var n hexutil.Uint64
	mustDecode(t, call(t, url, "eth_blockNumber"), &n)
	return uint64(n)
}

// word is a number as 32 bytes of call data.
func word(n uint64) []byte { return common.BigToHash(new(big.Int).SetUint64(n)).Bytes() }

// eventually polls until check reports true. The server decides how long that
// takes; a test that waits for it has no better clock.
func eventually(t testing.TB, what string, check func() bool) {
	t.Helper()
	for range 2000 {
		if check() {
			return
		}
		pause(t, poll)
	}
	t.Fatalf("waited too long for %s", what)
}
