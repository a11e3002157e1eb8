// SPDX-License-Identifier: Apache-2.0

package evm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"glimpse/chain"
	"glimpse/evm"
	"glimpse/internal/chaingen"
)

var (
	echo    = chain.Address{0xf0} // returns what it is called with
	reverts = chain.Address{0xf1} // reverts with what it is called with
	endless = chain.Address{0xf2} // reads one slot after the other
	env     = chain.Address{0xf3} // returns number, base fee, gas price, blob fee and the hash of block 298
	reader  = chain.Address{0xf4} // reads slot 1, its balance, and the code of mortal
	greedy  = chain.Address{0xf5} // fails unless 300,000 gas are left
	broken  = chain.Address{0xf6} // runs into an invalid instruction
)

// callWorld has contracts to call.
func callWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, cancun())
	contract := chain.Account{Exists: true, Nonce: 1}
	for addr, code := range map[chain.Address]string{
		echo:    `CALLDATASIZE 0 0 CALLDATACOPY CALLDATASIZE 0 RETURN`,
		reverts: `CALLDATASIZE 0 0 CALLDATACOPY CALLDATASIZE 0 REVERT`,
		endless: `0 again: 1 ADD DUP1 SLOAD POP @again JUMP`,
		env: `NUMBER 0 MSTORE BASEFEE 32 MSTORE GASPRICE 64 MSTORE BLOBBASEFEE 96 MSTORE
			298 BLOCKHASH 128 MSTORE 160 0 RETURN`,
		reader: `1 SLOAD POP SELFBALANCE POP 170 152 SHL EXTCODESIZE POP 250 BLOCKHASH POP 7 1 SSTORE STOP`,
		greedy: `300000 GAS LT @fail JUMPI STOP fail: 0 0 REVERT`,
		broken: `INVALID`,
	} {
		w.put(addr, contract, chaingen.Assemble(code), nil)
	}
	return w
}

func (w *world) scene() evm.Scene {
	return evm.Scene{Header: w.header, Base: w.state, Ancestors: func(n chain.Number) (chain.Hash, error) { return word(uint64(n)), nil }}
}

func to(a chain.Address, data ...byte) ethereum.CallMsg { return ethereum.CallMsg{To: &a, Data: data} }

func TestCallReturnsAndChangesNothing(t *testing.T) {
	w := callWorld(t)
	result, err := w.rules.Call(t.Context(), w.scene(), to(echo, 1, 2, 3))
	if err != nil || !bytes.Equal(result.Output, []byte{1, 2, 3}) || result.GasUsed <= 21_000 {
		t.Errorf("echo: got %+v, %v, want its input", result, err)
	}
	if _, err := w.rules.Call(t.Context(), w.scene(), to(mortal, pair(1, 99)...)); err != nil {
		t.Fatal(err)
	}
	if v, err := w.state.Slot(mortal, word(1)); v != word(7) || err != nil {
		t.Errorf("slot after a call that writes it: got %s, %v, want 7 as before", v, err)
	}
}

func TestCallSeesItsBlock(t *testing.T) {
	w := callWorld(t)
	paid := to(env)
	paid.From = crypto.PubkeyToAddress(w.secret.PublicKey)
	paid.GasFeeCap, paid.GasTipCap, paid.Gas = big.NewInt(9), big.NewInt(1), 100_000
	other := w.scene()
	other.Header = types.CopyHeader(w.header)
	other.Header.Number, other.BlobBaseFee = big.NewInt(400), big.NewInt(55)
	tests := []struct {
		name  string
		scene evm.Scene
		call  ethereum.CallMsg
		want  []uint64 // number, base fee, price, blob fee, hash
	}{
		{"without a price there is no base fee", w.scene(), to(env), []uint64{300, 0, 0, 1, 298}},
		{"with a price there is", w.scene(), paid, []uint64{300, 7, 8, 1, 298}},
		{"another number and blob fee", other, to(env), []uint64{400, 0, 0, 55, 298}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			result, err := w.rules.Call(t.Context(), tt.scene, tt.call)
			if err != nil {
				t.Fatal(err)
			}
			var got []uint64
			for i := 0; i < len(result.Output); i += 32 {
				got = append(got, common.BytesToHash(result.Output[i:i+32]).Big().Uint64())
			}
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// abiError is Error(string) with the text "no".
var abiError = common.FromHex("08c379a0" + fmt.Sprintf("%064x%064x", 32, 2) + "6e6f" + strings.Repeat("00", 30))

func TestFailedCallsSayWhy(t *testing.T) {
	w := callWorld(t)
	poor := to(echo)
	poor.GasPrice, poor.Gas = big.NewInt(10), 30_000
	rich := to(echo)
	rich.Value = big.NewInt(1)
	little := to(echo)
	little.Gas = 20_000
	both := to(echo)
	both.GasPrice, both.GasFeeCap = big.NewInt(1), big.NewInt(1)
	large := to(echo)
	large.Value = new(big.Int).Lsh(big.NewInt(1), 256)
	blob := to(echo)
	blob.BlobGasFeeCap = big.NewInt(1)
	tests := []struct {
		name           string
		call           ethereum.CallMsg
		want, estimate string
		reverted       bool
	}{
		{"revert with an ABI error", to(reverts, abiError...), "execution reverted: no", "execution reverted: no", true},
		{"revert with other data", to(reverts, 1), "execution reverted", "execution reverted", true},
		{"revert without data", to(reverts), "execution reverted", "execution reverted", true},
		{"invalid instruction", to(broken), "invalid opcode: INVALID", "invalid opcode: INVALID", false},
		{"out of gas", to(endless), "out of gas", "gas required exceeds allowance (30000000)", false},
		{"no funds for the gas", poor, "insufficient funds for gas * price + value", "gas required exceeds allowance (0)", false},
		{"no funds for the value", rich, "insufficient funds for", "insufficient funds for", false},
		{"less gas than any transaction takes", little, "err: intrinsic gas too low", "", false},
		{"two kinds of price", both, "both gasPrice and (maxFeePerGas", "both gasPrice and (maxFeePerGas", false},
		{"a number that is too large", large, "more than 256 bits", "more than 256 bits", false},
		{"a blob price without blobs", blob, "without blobVersionedHashes", "without blobVersionedHashes", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			result, err := w.rules.Call(t.Context(), w.scene(), tt.call)
			checkFailure(t, err, tt.want, tt.reverted, tt.call.Data)
			if result != nil {
				t.Errorf("got %+v beside the error", result)
			}
			_, err = w.rules.EstimateGas(t.Context(), w.scene(), tt.call)
			if tt.estimate != "" {
				checkFailure(t, err, tt.estimate, tt.reverted, tt.call.Data)
			} else if err != nil {
				t.Errorf("estimate: got %v, want none", err)
			}
		})
	}
}

func checkFailure(t *testing.T, err error, want string, reverted bool, data []byte) {
	t.Helper()
	failed := new(evm.CallError)
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), want) || failed.Reverted != reverted {
		t.Errorf("got %v, want %q, reverted: %v", err, want, reverted)
		return
	}
	if reverted && !bytes.Equal(failed.Revert, data) {
		t.Errorf("got revert data %x, want %x", failed.Revert, data)
	}
}

// An estimate is enough, and a little less is not.
func TestEstimateIsCloseToTheLowest(t *testing.T) {
	w := callWorld(t)
	sender := crypto.PubkeyToAddress(w.secret.PublicKey)
	created := ethereum.CallMsg{From: sender, Data: childInit}
	for name, call := range map[string]ethereum.CallMsg{
		"transfer":                {From: sender, To: &chain.Address{0x99}, Value: big.NewInt(1)},
		"write":                   to(mortal, pair(5, 5)...),
		"clearing gives back":     to(mortal, pair(1, 0)...),
		"creation":                created,
		"needs more than it uses": to(greedy),
	} {
		t.Run(name, func(t *testing.T) {
			gas, err := w.rules.EstimateGas(t.Context(), w.scene(), call)
			if err != nil {
				t.Fatal(err)
			}
			call.Gas = gas
			if _, err := w.rules.Call(t.Context(), w.scene(), call); err != nil {
				t.Errorf("with the estimate of %d: got %v, want success", gas, err)
			}
			call.Gas = gas - gas*2/100
			if _, err := w.rules.Call(t.Context(), w.scene(), call); err == nil {
				t.Errorf("with 2%% less than the estimate of %d: got success, want failure", gas)
			}
		})
	}
}

func TestAccessListNamesWhatIsTouched(t *testing.T) {
	w := callWorld(t)
	result, err := w.rules.AccessList(t.Context(), w.scene(), to(reader))
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(result.List)
	want := fmt.Sprint(types.AccessList{
		{Address: mortal, StorageKeys: []chain.Hash{}}, {Address: reader, StorageKeys: []chain.Hash{word(1)}},
	})
	if got != want || result.Failure != nil {
		t.Errorf("got %s, %v, want %s", got, result.Failure, want)
	}
	failing, err := w.rules.AccessList(t.Context(), w.scene(), to(reverts))
	if err != nil || failing.Failure == nil || failing.List == nil || len(failing.List) != 0 {
		t.Errorf("call that reverts: got %+v, %v, want an empty list and a failure", failing, err)
	}
}

// callsByName are the three ways to run a message, without their results.
func callsByName(r *evm.Rules) map[string]func(context.Context, evm.Scene, ethereum.CallMsg) error {
	return map[string]func(context.Context, evm.Scene, ethereum.CallMsg) error{
		"Call": func(ctx context.Context, s evm.Scene, m ethereum.CallMsg) error {
			_, err := r.Call(ctx, s, m)
			return err
		},
		"EstimateGas": func(ctx context.Context, s evm.Scene, m ethereum.CallMsg) error {
			_, err := r.EstimateGas(ctx, s, m)
			return err
		},
		"AccessList": func(ctx context.Context, s evm.Scene, m ethereum.CallMsg) error {
			_, err := r.AccessList(ctx, s, m)
			return err
		},
	}
}

// Every read of a call fails once. Nothing but ErrStateRead may come out (P2).
func TestEveryFailedReadOfACallIsReported(t *testing.T) {
	w := callWorld(t)
	paid := to(reader)
	paid.From = crypto.PubkeyToAddress(w.secret.PublicKey)
	paid.GasPrice = big.NewInt(10)
	for name, run := range callsByName(w.rules) {
		t.Run(name, func(t *testing.T) {
			for k := 1; ; k++ {
				f := newFaulty(w.state, w.scene().Ancestors, k)
				err := run(t.Context(), evm.Scene{Header: w.header, Base: f, Ancestors: f.hash}, paid)
				if f.Reads < k {
					if err != nil || k < 6 {
						t.Errorf("got %d reads and %v, want 5 or more and no error", k-1, err)
					}
					return
				}
				failed := new(evm.CallError)
				if !errors.Is(err, evm.ErrStateRead) || errors.As(err, &failed) {
					t.Fatalf("read %d failed: got %v, want ErrStateRead", k, err)
				}
			}
		})
	}
}

// cancellingView ends a context when a slot is read, and waits until that has
// had its effect.
type cancellingView struct {
	chain.View
	cancel func()
	reads  int
}

func (v *cancellingView) Slot(a chain.Address, s chain.Slot) (chain.Value, error) {
	v.reads++
	v.cancel()
	synctest.Wait()
	return v.View.Slot(a, s)
}

func TestCallEndsWithItsContext(t *testing.T) {
	w := callWorld(t)
	for name, run := range callsByName(w.rules) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s, view := w.scene(), &cancellingView{View: w.state, cancel: cancel}
			s.Base = view
			failed := new(evm.CallError)
			if err := run(ctx, s, to(endless)); !errors.Is(err, context.Canceled) || errors.As(err, &failed) {
				t.Errorf("%s: got %v, want Canceled", name, err)
			}
			if view.reads != 1 {
				t.Errorf("%s: got %d reads, want it to end after the first", name, view.reads)
			}
		})
	}
}
