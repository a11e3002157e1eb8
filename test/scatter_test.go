// SPDX-License-Identifier: Apache-2.0

package test

import (
	"math/rand/v2"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// The scatter is a contract that, called with 32 bytes, writes small numbers,
// among them zeros, to twenty of its first 64 slots, which depend on them.
var scatterInit = common.FromHex("0x6025600a5f3960255ff3" +
	"5f3560145b815f528060205260405f208060081c60031690603f1655600190038060045700")

// storageLoad sends transactions that change much storage.
type storageLoad struct {
	random   *rand.Rand
	url      string
	wallets  []*wallet
	scatters []common.Address
}

func newStorageLoad(t testing.TB, seed uint64, url string) *storageLoad {
	t.Helper()
	l := &storageLoad{random: rand.New(rand.NewPCG(seed, 2)), url: url}
	for i := range devKeys[:4] {
		l.wallets = append(l.wallets, newWallet(t, i))
	}
	l.deploy(t)
	return l
}

func (l *storageLoad) deploy(t testing.TB) {
	t.Helper()
	w := l.wallets[l.random.IntN(len(l.wallets))]
	l.scatters = append(l.scatters, crypto.CreateAddress(w.addr, w.nonce))
	send(t, l.url, w.signAs(t, l.call(w, nil, scatterInit)))
}

func (l *storageLoad) call(w *wallet, to *common.Address, data []byte) types.TxData {
	return &types.DynamicFeeTx{ChainID: devChainID, Nonce: w.nonce, To: to, Data: data, Gas: 1_000_000, GasFeeCap: feeCap, GasTipCap: tip}
}

// step sends one transaction: a call of a contract, or seldom a deployment.
func (l *storageLoad) step(t testing.TB) {
	t.Helper()
	if len(l.scatters) < 8 && l.random.IntN(10) == 0 {
		l.deploy(t)
		return
	}
	w := l.wallets[l.random.IntN(len(l.wallets))]
	to := l.scatters[l.random.IntN(len(l.scatters))]
	send(t, l.url, w.signAs(t, l.call(w, &to, word(l.random.Uint64()))))
}

// refresh reads nonces again, after an upstream lost or took back some.
func (l *storageLoad) refresh(t testing.TB) {
	t.Helper()
	for _, w := range l.wallets {
		var nonce hexutil.Uint64
		mustDecode(t, call(t, l.url, "eth_getTransactionCount", w.addr, "pending"), &nonce)
		w.nonce = uint64(nonce)
	}
}
