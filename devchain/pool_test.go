// SPDX-License-Identifier: Apache-2.0

package devchain_test

import (
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/txpool"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"

	"glimpse/chain"
	"glimpse/devchain"
)

func TestRefusals(t *testing.T) {
	stranger, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	dynamic := func(change func(*types.DynamicFeeTx)) *types.Transaction {
		data := &types.DynamicFeeTx{ChainID: chainID, Nonce: 1, To: &accounts[1].Address, Gas: 21_000, GasFeeCap: gwei(50), GasTipCap: gwei(1)}
		change(data)
		return sign(t, 0, data)
	}
	blob := func(change func(*types.BlobTx)) *types.Transaction {
		data := blobData(t, 1)
		data.Sidecar = data.Sidecar.Copy()
		change(data)
		return sign(t, 0, data)
	}
	foreign := types.MustSignNewTx(accounts[0].Key, types.NewPragueSigner(big.NewInt(1)), &types.DynamicFeeTx{ChainID: big.NewInt(1), Gas: 21_000})
	poor := types.MustSignNewTx(stranger, signer, &types.LegacyTx{Gas: 21_000, GasPrice: gwei(10), To: &accounts[0].Address})
	waiting := transfer(t, 0, 1, 1, 5)
	tests := []struct {
		name  string
		tx    *types.Transaction
		cause error
		text  string
	}{
		{"one that waits already", waiting, txpool.ErrAlreadyKnown, "already known"},
		{"one that is pre-confirmed", transfer(t, 0, 1, 0, 1), txpool.ErrAlreadyKnown, "already known"},
		{"a nonce that is used", transfer(t, 0, 2, 0, 3), core.ErrNonceTooLow, "nonce too low: next nonce 1, tx nonce 0"},
		{"a replacement at the same price", transfer(t, 0, 2, 1, 5), txpool.ErrReplaceUnderpriced, "replacement transaction underpriced"},
		{"a replacement by 9 per cent", dynamic(func(d *types.DynamicFeeTx) { d.GasFeeCap, d.GasTipCap = gwei(114), big.NewInt(5.45*params.GWei) }),
			txpool.ErrReplaceUnderpriced, "replacement transaction underpriced"},
		{"no money", poor, core.ErrInsufficientFunds, "insufficient funds for gas * price + value: balance 0, tx cost 210000000000000, overshot 210000000000000"},
		{"nothing: almost all there is may be spent", dynamic(func(d *types.DynamicFeeTx) {
			d.Nonce, d.Value, d.Gas, d.GasFeeCap = 2, ether(9000), 16_000_000, gwei(62_499) // with gas 9999.984 ether
		}), nil, ""},
		{"more than there is", dynamic(func(d *types.DynamicFeeTx) { d.Nonce, d.Value = 3, ether(10_001) }),
			core.ErrInsufficientFunds, "insufficient funds for gas * price + value: balance 9999"},
		{"more than all that waits leaves", dynamic(func(d *types.DynamicFeeTx) { d.Nonce, d.Value = 3, ether(1) }),
			core.ErrInsufficientFunds, "queued cost"},
		{"too little gas", dynamic(func(d *types.DynamicFeeTx) { d.Gas = 20_999 }), core.ErrIntrinsicGas, "intrinsic gas too low: gas 20999, minimum needed 21000"},
		{"too little gas for its data", dynamic(func(d *types.DynamicFeeTx) { d.Gas, d.Data = 21_200, slices.Repeat([]byte{0}, 50) }),
			core.ErrFloorDataGas, "insufficient gas for floor data gas cost: gas 21200, minimum needed 21500"},
		{"more gas than EIP-7825 allows", dynamic(func(d *types.DynamicFeeTx) { d.Gas = 1<<24 + 1 }), core.ErrGasLimitTooHigh, "transaction gas limit too high (cap: 16777216, tx: 16777217)"},
		{"a fee cap below the base fee", dynamic(func(d *types.DynamicFeeTx) { d.GasFeeCap, d.GasTipCap = big.NewInt(1), big.NewInt(1) }),
			core.ErrFeeCapTooLow, "max fee per gas less than block base fee: address 0xf39F"},
		{"a tip above the fee cap", dynamic(func(d *types.DynamicFeeTx) { d.GasTipCap = gwei(51) }), core.ErrTipAboveFeeCap, "max priority fee per gas higher than max fee per gas"},
		{"another chain", foreign, txpool.ErrInvalidSender, "invalid sender: invalid chain id for signer: have 1 want 31337"},
		{"the last nonce there is", dynamic(func(d *types.DynamicFeeTx) { d.Nonce = 1<<64 - 1 }), core.ErrNonceMax, "nonce has max value"},
		{"too much data", dynamic(func(d *types.DynamicFeeTx) { d.Gas, d.Data = 16_000_000, make([]byte, 128<<10) }), txpool.ErrOversizedData, "oversized data: transaction size 131"},
		{"too long init code", dynamic(func(d *types.DynamicFeeTx) { d.To, d.Gas, d.Data = nil, 16_000_000, make([]byte, 49153) }), nil, "max initcode size exceeded"},
		{"no authorization", sign(t, 0, &types.SetCodeTx{ChainID: uint256.MustFromBig(chainID), Nonce: 1, Gas: 50_000, GasFeeCap: uint256.NewInt(params.GWei * 50)}),
			nil, "set code tx must have at least one authorization tuple"},
		{"blobs that are missing", blob(func(d *types.BlobTx) { d.Sidecar = nil }), nil, "missing sidecar in blob transaction"},
		{"blobs of another transaction", blob(func(d *types.BlobTx) { d.BlobHashes = []chain.Hash{{1}} }), nil, "blob 0: computed hash"},
		{"blobs that are not what was proved", blob(func(d *types.BlobTx) { d.Sidecar.Blobs[0][5] = 9 }), txpool.ErrKZGVerificationError, "KZG verification error"},
		{"no blobs", blob(func(d *types.BlobTx) { d.BlobHashes, d.Sidecar = nil, types.NewBlobTxSidecar(1, nil, nil, nil) }),
			core.ErrMissingBlobHashes, "blob transaction missing blob hashes"},
		{"a blob fee cap below the blob fee", blob(func(d *types.BlobTx) { d.BlobFeeCap = new(uint256.Int) }), txpool.ErrTxGasPriceTooLow, "transaction gas price below minimum"},
	}
	run(t, newStore(t, devchain.Genesis()), nil, func(w *world) {
		w.send(transfer(t, 0, 1, 0, 1))
		w.pass(flashblockTime)
		w.send(waiting)
		for _, tt := range tests {
			err := w.Send(w.t.Context(), tt.tx)
			if tt.text == "" {
				if err != nil {
					t.Errorf("%s: got %v, want it accepted", tt.name, err)
				}
				continue
			}
			refusal := new(devchain.Refusal)
			if !errors.As(err, &refusal) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%s: got %v, want %q", tt.name, err, tt.text)
			}
			if tt.cause != nil && !errors.Is(err, tt.cause) {
				t.Errorf("%s: got %v, want %v", tt.name, err, tt.cause)
			}
		}
	})
}

func TestGasAboveTheBlockLimitIsRefused(t *testing.T) {
	text := strings.Replace(string(devchain.Genesis()), `"gasLimit": "0x3938700"`, `"gasLimit": "0xf4240"`, 1)
	run(t, newStore(t, []byte(text)), nil, func(w *world) {
		tx := sign(t, 0, &types.LegacyTx{Gas: 1_000_001, GasPrice: gwei(2), To: &accounts[1].Address})
		if err := w.Send(w.t.Context(), tx); !errors.Is(err, txpool.ErrGasLimit) || err.Error() != "exceeds block gas limit" {
			t.Errorf("got %v, want ErrGasLimit", err)
		}
	})
}

func TestUndecodableTransactions(t *testing.T) {
	for name, tt := range map[string]struct {
		raw  []byte
		text string
	}{
		"a type that there is not": {[]byte{0x7d, 0xc0}, "transaction type not supported"},
		"nothing":                  {nil, "typed transaction too short"},
		"half a transaction":       {[]byte{0xf8, 0x80, 1}, "rlp: "},
		"far too much":             {make([]byte, 1<<20+1), "oversized data: transaction size 1048577, limit 1048576"},
	} {
		_, err := devchain.DecodeTransaction(tt.raw)
		refusal := new(devchain.Refusal)
		if !errors.As(err, &refusal) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: got %v, want %q", name, err, tt.text)
		}
	}
}

func TestBlobsWithOldProofsAreTaken(t *testing.T) {
	data := blobData(t, 0)
	old := types.NewBlobTxSidecar(types.BlobSidecarVersion0, data.Sidecar.Blobs, data.Sidecar.Commitments, data.Sidecar.Proofs[:1])
	data.Sidecar = old
	tx := sign(t, 0, data)
	run(t, newStore(t, devchain.Genesis()), nil, func(w *world) {
		w.send(tx)
		if tx.BlobTxSidecar().Version != types.BlobSidecarVersion0 {
			t.Error("the caller's transaction was changed")
		}
		if err := w.WaitPreconfirmed(w.t.Context(), tx.Hash()); err != nil {
			t.Error(err)
		}
	})
}

func TestReplacement(t *testing.T) {
	run(t, newStore(t, devchain.Genesis()), nil, func(w *world) {
		old, better, next := transfer(t, 0, 1, 1, 10), transfer(t, 0, 2, 1, 30), transfer(t, 0, 3, 0, 1)
		w.send(old, better, next)
		if _, ok, err := w.Transaction(w.t.Context(), old.Hash()); ok || err != nil {
			t.Errorf("got the replaced transaction, %v", err)
		}
		if tx, ok, err := w.Transaction(w.t.Context(), better.Hash()); !ok || err != nil || tx.Hash() != better.Hash() {
			t.Errorf("got no replacement, %v", err)
		}
		w.pass(flashblockTime)
		if got, want := w.promised, hashes([]*types.Transaction{next, better}); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if _, ok, _ := w.Transaction(w.t.Context(), better.Hash()); ok {
			t.Error("got a pre-confirmed transaction as a waiting one")
		}
	})
}

func TestGappedTransactionsWait(t *testing.T) {
	run(t, newStore(t, devchain.Genesis()), nil, func(w *world) {
		ctx := w.t.Context()
		third, second, first := transfer(t, 0, 1, 2, 9), transfer(t, 0, 1, 1, 9), transfer(t, 0, 1, 0, 1)
		w.send(third, second)
		w.pass(2 * blockTime)
		if len(w.promised) != 0 {
			t.Errorf("got %v executed before the first nonce", w.promised)
		}
		if nonce, err := w.NextNonce(ctx, accounts[0].Address); nonce != 0 || err != nil {
			t.Errorf("got nonce %d, %v, want that of the gap", nonce, err)
		}
		w.send(first)
		if nonce, err := w.NextNonce(ctx, accounts[0].Address); nonce != 3 || err != nil {
			t.Errorf("got nonce %d, %v, want 3", nonce, err)
		}
		w.pass(flashblockTime)
		if want := hashes([]*types.Transaction{first, second, third}); !slices.Equal(w.promised, want) {
			t.Errorf("got %v, want %v", w.promised, want)
		}
	})
}

func TestFullPool(t *testing.T) {
	small := func(o *devchain.Options) { o.Limits = devchain.Limits{Transactions: 4, PerAccount: 3, MinTip: 10} }
	run(t, newStore(t, devchain.Genesis()), small, func(w *world) {
		ctx := w.t.Context()
		w.send(transfer(t, 0, 1, 5, 1), transfer(t, 0, 1, 6, 1), transfer(t, 0, 1, 7, 1))
		if err := w.Send(ctx, transfer(t, 0, 1, 8, 1)); !errors.Is(err, txpool.ErrAccountLimitExceeded) || err.Error() != "account limit exceeded: pooled 3 txs" {
			t.Errorf("fourth of an account: got %v", err)
		}
		w.send(transfer(t, 1, 0, 0, 1))
		if err := w.Send(ctx, transfer(t, 2, 0, 0, 1)); !errors.Is(err, devchain.ErrPoolFull) || err.Error() != "txpool is full" {
			t.Errorf("fifth of all: got %v", err)
		}
		w.send(transfer(t, 0, 1, 5, 200)) // a replacement takes no room
		if err := w.Send(ctx, transfer(t, 3, 0, 0, 0)); !errors.Is(err, txpool.ErrTxGasPriceTooLow) {
			t.Errorf("without a tip: got %v", err)
		}
		w.pass(flashblockTime) // makes room for one
		w.send(transfer(t, 2, 0, 0, 1))
	})
	bytes := func(o *devchain.Options) { o.Limits = devchain.Limits{Bytes: 1000} }
	run(t, newStore(t, devchain.Genesis()), bytes, func(w *world) {
		data := &types.LegacyTx{Gas: 100_000, GasPrice: gwei(2), To: &accounts[1].Address, Data: make([]byte, 700), Nonce: 1}
		w.send(sign(t, 0, data))
		if err := w.Send(w.t.Context(), sign(t, 1, data)); !errors.Is(err, devchain.ErrPoolFull) {
			t.Errorf("more bytes than allowed: got %v", err)
		}
	})
}

// What was good when it came may be impossible when its turn comes. It is
// dropped, and the block is as if it had never been.
func TestWhatCannotBeExecutedAnyMoreIsDropped(t *testing.T) {
	run(t, newStore(t, devchain.Genesis()), nil, func(w *world) {
		ctx := w.t.Context()
		if err := w.Pause(ctx); err != nil {
			t.Fatal(err)
		}
		deploy, addr := deployment(t, 9, 0)
		w.send(deploy)
		w.pass(flashblockTime)
		// The delegation uses up the authority's nonce 0, at a higher tip.
		stale := sign(t, 5, &types.LegacyTx{Gas: 21_000, GasPrice: big.NewInt(1_000_000_001), To: &accounts[1].Address})
		after := transfer(t, 5, 1, 1, 0)
		w.send(stale, after, delegation(t, 4, 0, 5, 0, addr))
		dropped := make(chan error, 1)
		go func() { dropped <- w.WaitPreconfirmed(ctx, stale.Hash()) }()
		w.pass(flashblockTime)
		select {
		case err := <-dropped:
			if !errors.Is(err, devchain.ErrDropped) || !errors.Is(err, core.ErrNonceTooLow) {
				t.Errorf("got %v, want that it was dropped for its nonce", err)
			}
		default:
			t.Error("nobody was told of the dropped transaction")
		}
		if got := w.promised[len(w.promised)-1]; got != after.Hash() {
			t.Errorf("got %s last, want the account's next transaction", got)
		}
		w.pass(time.Second)
	})
}

func TestAFullBlockLeavesTheRestToTheNext(t *testing.T) {
	text := strings.Replace(string(devchain.Genesis()), `"gasLimit": "0x3938700"`, `"gasLimit": "0xf4240"`, 1)
	run(t, newStore(t, []byte(text)), nil, func(w *world) {
		for from := range 3 {
			w.send(sign(t, from, &types.LegacyTx{Gas: 500_000, GasPrice: gwei(10), Data: burner}))
		}
		w.pass(blockTime + flashblockTime)
		if n := len(w.sealed[0].Block.Transactions()); n != 2 {
			t.Errorf("got %d transactions in the first block, want the 2 that fit", n)
		}
		if len(w.promised) != 1 {
			t.Errorf("got %d pre-confirmed for the next block, want 1", len(w.promised))
		}
	})
}

func TestBlobsThatDoNotFitWaitForTheNextBlock(t *testing.T) {
	var txs []*types.Transaction
	for from := range accounts {
		txs = append(txs, sign(t, from, blobData(t, 0)))
	}
	run(t, newStore(t, devchain.Genesis()), nil, func(w *world) {
		w.send(txs...)
		w.pass(blockTime + flashblockTime)
		if got := len(w.sealed[0].Block.Transactions()); got != 9 || len(w.promised) != 1 {
			t.Errorf("got %d transactions with a blob sealed and %d in the next block, want 9 and 1", got, len(w.promised))
		}
	})
}

func TestBlocksStayWithinTheirSize(t *testing.T) {
	text := strings.Replace(string(devchain.Genesis()), `"gasLimit": "0x3938700"`, `"gasLimit": "0xbebc200"`, 1) // 200 million
	run(t, newStore(t, []byte(text)), nil, func(w *world) {
		for nonce := range uint64(70) {
			w.send(sign(t, 0, &types.LegacyTx{Nonce: nonce, Gas: 1_400_000, GasPrice: gwei(20), To: &accounts[1].Address, Data: make([]byte, 127<<10)}))
		}
		w.pass(blockTime + flashblockTime)
		sealed := w.sealed[0].Block
		if size := sealed.Size(); size > params.MaxBlockSize || size < params.MaxBlockSize-256<<10 {
			t.Errorf("got a block of %d bytes, want a little less than %d", size, params.MaxBlockSize)
		}
		if got := len(sealed.Transactions()) + len(w.promised); got != 70 {
			t.Errorf("got %d transactions in two blocks, want 70", got)
		}
	})
}
