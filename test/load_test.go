// SPDX-License-Identifier: Apache-2.0

package test

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/crypto/kzg4844"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// A load sends random transactions of every type from several accounts.
type load struct {
	random  *rand.Rand
	url     string
	wallets []*wallet
	signers []*wallet // of delegations; they send nothing, so their nonces cannot collide
	cells   []common.Address
	blobs   *types.BlobTxSidecar
	sent    [types.SetCodeTxType + 1]int // by type
}

func newLoad(t testing.TB, seed uint64, url string) *load {
	t.Helper()
	l := &load{random: rand.New(rand.NewPCG(seed, 1)), url: url, blobs: emptyBlob(t)}
	for i := range devKeys {
		l.wallets = append(l.wallets, newWallet(t, i))
	}
	for i := range 3 {
		key, err := crypto.ToECDSA(crypto.Keccak256([]byte{byte(i)}))
		if err != nil {
			t.Fatal(err)
		}
		l.signers = append(l.signers, &wallet{key: key, addr: crypto.PubkeyToAddress(key.PublicKey)})
	}
	for _, w := range l.wallets[:3] {
		l.cells = append(l.cells, deployCell(t, url, w))
	}
	return l
}

// emptyBlob is one blob of zeros with the proofs that Osaka asks for.
func emptyBlob(t testing.TB) *types.BlobTxSidecar {
	t.Helper()
	blob := new(kzg4844.Blob)
	commitment, err := kzg4844.BlobToCommitment(blob)
	if err != nil {
		t.Fatal(err)
	}
	proofs, err := kzg4844.ComputeCellProofs(blob)
	if err != nil {
		t.Fatal(err)
	}
	return types.NewBlobTxSidecar(types.BlobSidecarVersion1, []kzg4844.Blob{*blob}, []kzg4844.Commitment{commitment}, proofs)
}

var (
	feeCap, tip = big.NewInt(20_000_000_000), big.NewInt(1_000_000_000)
	gas         = uint64(300_000)
)

// step sends one transaction.
func (l *load) step(t testing.TB) {
	t.Helper()
	w := l.wallets[l.random.IntN(len(l.wallets))]
	cell := l.cells[l.random.IntN(len(l.cells))]
	data := word(l.random.Uint64N(4)) // often zero, often what is there already
	access := types.AccessList{{Address: cell, StorageKeys: []common.Hash{{}}}}
	var inner types.TxData
	switch l.random.IntN(7) {
	case 0:
		inner = &types.LegacyTx{Nonce: w.nonce, To: &cell, Data: data, Gas: gas, GasPrice: feeCap}
	case 1:
		inner = &types.AccessListTx{ChainID: devChainID, Nonce: w.nonce, To: &cell, Data: data, Gas: gas, GasPrice: feeCap, AccessList: access}
	case 2:
		to := common.BigToAddress(big.NewInt(int64(0xee00 + l.random.IntN(20))))
		inner = &types.DynamicFeeTx{ChainID: devChainID, Nonce: w.nonce, To: &to, Value: big.NewInt(int64(l.random.IntN(3))), Gas: gas, GasFeeCap: feeCap, GasTipCap: tip}
	case 3:
		l.cells = append(l.cells, crypto.CreateAddress(w.addr, w.nonce))
		inner = &types.DynamicFeeTx{ChainID: devChainID, Nonce: w.nonce, Data: cellInit, Gas: gas, GasFeeCap: feeCap, GasTipCap: tip}
	case 4:
		inner = &types.BlobTx{
			ChainID: uint256.MustFromBig(devChainID), Nonce: w.nonce, To: cell, Data: data, Gas: gas,
			GasFeeCap: uint256.MustFromBig(feeCap), GasTipCap: uint256.MustFromBig(tip), BlobFeeCap: uint256.NewInt(params.GWei),
			BlobHashes: l.blobs.BlobHashes(), Sidecar: l.blobs,
		}
	case 5:
		inner = l.delegation(t, w, cell, data)
	default: // through a delegation, where there is one
		to := l.signers[l.random.IntN(len(l.signers))].addr
		inner = &types.DynamicFeeTx{ChainID: devChainID, Nonce: w.nonce, To: &to, Data: data, Gas: gas, GasFeeCap: feeCap, GasTipCap: tip}
	}
	tx := w.signAs(t, inner)
	send(t, l.url, tx)
	l.sent[tx.Type()]++
}

// delegation lets an account act as a cell, or as nothing again.
func (l *load) delegation(t testing.TB, w *wallet, cell common.Address, data []byte) types.TxData {
	t.Helper()
	signer, target := l.signers[l.random.IntN(len(l.signers))], cell
	if l.random.IntN(3) == 0 {
		target = common.Address{}
	}
	var nonce hexutil.Uint64
	mustDecode(t, call(t, l.url, "eth_getTransactionCount", signer.addr, "pending"), &nonce)
	auth, err := types.SignSetCode(signer.key, types.SetCodeAuthorization{
		ChainID: *uint256.MustFromBig(devChainID), Address: target, Nonce: uint64(nonce),
	})
	if err != nil {
		t.Fatal(err)
	}
	return &types.SetCodeTx{
		ChainID: uint256.MustFromBig(devChainID), Nonce: w.nonce, To: cell, Data: data, Gas: gas,
		GasFeeCap: uint256.MustFromBig(feeCap), GasTipCap: uint256.MustFromBig(tip), AuthList: []types.SetCodeAuthorization{auth},
	}
}
