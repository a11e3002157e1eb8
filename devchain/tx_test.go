// SPDX-License-Identifier: Apache-2.0

package devchain_test

import (
	"math/big"
	"slices"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/crypto/kzg4844"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"

	"glimpse/chain"
	"glimpse/devchain"
	"glimpse/internal/chaingen"
)

var (
	accounts = devchain.Accounts()
	chainID  = big.NewInt(devchain.ChainID)
	signer   = types.NewPragueSigner(chainID)
)

// The storer writes the second word of its input to the slot that the first one
// names, and logs.
var storer = chaingen.Assemble(`32 CALLDATALOAD 0 CALLDATALOAD SSTORE CALLDATASIZE 0 0 LOG1 STOP`)

var storerInit = chaingen.Deployer(``, storer)

func storing(slot, value byte) []byte {
	return slices.Concat(common.LeftPadBytes([]byte{slot}, 32), common.LeftPadBytes([]byte{value}, 32))
}

func ether(n int64) *big.Int { return new(big.Int).Mul(big.NewInt(n), big.NewInt(params.Ether)) }

func gwei(n int64) *big.Int { return big.NewInt(n * params.GWei) }

func sign(t testing.TB, from int, data types.TxData) *types.Transaction {
	t.Helper()
	tx, err := types.SignNewTx(accounts[from].Key, signer, data)
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

// transfer pays 1 wei from one account to another, with a tip in gwei.
func transfer(t testing.TB, from, to int, nonce uint64, tip int64) *types.Transaction {
	t.Helper()
	return sign(t, from, &types.DynamicFeeTx{
		ChainID: chainID, Nonce: nonce, To: &accounts[to].Address, Value: big.NewInt(1), Gas: 21_000,
		GasTipCap: gwei(tip), GasFeeCap: gwei(100 + tip),
	})
}

func deployment(t testing.TB, from int, nonce uint64) (*types.Transaction, chain.Address) {
	t.Helper()
	tx := sign(t, from, &types.LegacyTx{Nonce: nonce, Gas: 500_000, GasPrice: gwei(20), Data: storerInit})
	return tx, crypto.CreateAddress(accounts[from].Address, nonce)
}

func call(t testing.TB, from int, nonce uint64, to chain.Address, data []byte) *types.Transaction {
	t.Helper()
	return sign(t, from, &types.AccessListTx{ChainID: chainID, Nonce: nonce, Gas: 100_000, GasPrice: gwei(20), To: &to, Data: data})
}

// delegation lets an account use a contract's code.
func delegation(t testing.TB, from int, nonce uint64, authority int, authNonce uint64, target chain.Address) *types.Transaction {
	t.Helper()
	id := *uint256.MustFromBig(chainID)
	auth, err := types.SignSetCode(accounts[authority].Key, types.SetCodeAuthorization{ChainID: id, Address: target, Nonce: authNonce})
	if err != nil {
		t.Fatal(err)
	}
	return sign(t, from, &types.SetCodeTx{
		ChainID: &id, Nonce: nonce, To: accounts[authority].Address, Data: storing(3, 4), Gas: 300_000,
		GasTipCap: uint256.NewInt(params.GWei), GasFeeCap: uint256.NewInt(100 * params.GWei), AuthList: []types.SetCodeAuthorization{auth},
	})
}

// blobSidecar is made once: its proofs take a while.
var blobSidecar = sync.OnceValues(func() (*types.BlobTxSidecar, error) {
	blob := kzg4844.Blob{1: 7}
	commitment, err := kzg4844.BlobToCommitment(&blob)
	if err != nil {
		return nil, err
	}
	proofs, err := kzg4844.ComputeCellProofs(&blob)
	if err != nil {
		return nil, err
	}
	return types.NewBlobTxSidecar(types.BlobSidecarVersion1, []kzg4844.Blob{blob}, []kzg4844.Commitment{commitment}, proofs), nil
})

func blobData(t testing.TB, nonce uint64) *types.BlobTx {
	t.Helper()
	sidecar, err := blobSidecar()
	if err != nil {
		t.Fatal(err)
	}
	return &types.BlobTx{
		ChainID: uint256.MustFromBig(chainID), Nonce: nonce, To: accounts[0].Address, Gas: 21_000,
		GasTipCap: uint256.NewInt(params.GWei), GasFeeCap: uint256.NewInt(100 * params.GWei), BlobFeeCap: uint256.NewInt(params.GWei),
		BlobHashes: sidecar.BlobHashes(), Sidecar: sidecar,
	}
}

func (w *world) send(txs ...*types.Transaction) {
	w.t.Helper()
	for _, tx := range txs {
		if err := w.Send(w.t.Context(), tx); err != nil {
			w.t.Fatalf("send: %v", err)
		}
	}
}

func hashes(txs []*types.Transaction) (list []chain.Hash) {
	for _, tx := range txs {
		list = append(list, tx.Hash())
	}
	return list
}

// burner is init code that uses all its gas.
var burner = chaingen.Assemble(`again: @again JUMP`)
