// SPDX-License-Identifier: Apache-2.0

package opstack_test

import (
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"

	"glimpse/chain"
	"glimpse/evm"
	"glimpse/evm/opstack"
	"glimpse/internal/chaingen"
)

// lateConfig has Karst and Lagoon after the forks of the test chain.
func lateConfig(t *testing.T) opstack.Config {
	t.Helper()
	config := testConfig(t)
	karst, lagoon := timeOf(karstBlock), timeOf(lagoonBlock)
	config.Forks.Karst, config.Forks.Lagoon = &karst, &lagoon
	return config
}

const karstBlock, lagoonBlock = 60, 70

// postExecution says that transactions, by index, are refunded gas.
func postExecution(t *testing.T, block uint64, entries ...[2]uint64) *opstack.Transaction {
	t.Helper()
	tx, err := opstack.DecodeTransaction(rawPostExecution(t, 1, block, entries...))
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

func rawPostExecution(t *testing.T, version, block uint64, entries ...[2]uint64) []byte {
	t.Helper()
	fields, err := rlp.EncodeToBytes([]any{version, block, entries})
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte{opstack.PostExecutionType}, fields...)
}

func TestPostExecutionTransactionsThatDoNotDecode(t *testing.T) {
	for _, tt := range []struct {
		name        string
		raw         []byte
		unsupported bool
	}{
		{"another version", rawPostExecution(t, 2, 1, [2]uint64{1, 1}), true},
		{"no refunds", rawPostExecution(t, 1, 1), false},
		{"a refund of nothing", rawPostExecution(t, 1, 1, [2]uint64{1, 0}), false},
		{"refunds out of order", rawPostExecution(t, 1, 1, [2]uint64{2, 1}, [2]uint64{1, 1}), false},
		{"nothing", []byte{opstack.PostExecutionType}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tx, err := opstack.DecodeTransaction(tt.raw)
			if err == nil || errors.Is(err, evm.ErrUnsupported) != tt.unsupported {
				t.Errorf("got %v, %v", tx, err)
			}
		})
	}
}

// Whatever the sequencer gives back, nobody loses or gains beside the sender and
// those who were paid: the sum of balances stays.
func TestRefund(t *testing.T) {
	s := newScene(t, lateConfig(t), lagoonBlock)
	const given = 4000
	pay := s.sign(s.users[0], &types.DynamicFeeTx{
		ChainID: big.NewInt(chainID), GasFeeCap: big.NewInt(5e9), GasTipCap: big.NewInt(2e9), Gas: 100_000, To: &storer, Data: onePair,
	})
	attributes := s.attributes(s.block)
	balances := func(post *opstack.Transaction) (gas uint64, of map[chain.Address]*uint256.Int, receipts opstack.Receipts) {
		b := s.begin(t)
		txs := []*opstack.Transaction{attributes, pay}
		if post != nil {
			if err := b.Announce(post); err != nil {
				t.Fatal(err)
			}
			txs = append(txs, post)
		}
		diff, receipts, err := b.Apply(txs)
		if err != nil {
			t.Fatal(err)
		}
		after := s.state.Clone()
		if err := after.Apply(diff); err != nil {
			t.Fatal(err)
		}
		of = make(map[chain.Address]*uint256.Int)
		for _, addr := range []chain.Address{s.users[0].addr, sequencerVault, {0: 0x42, 19: 0x19}, {0: 0x42, 19: 0x1a}, {0: 0x42, 19: 0x1b}} {
			a := account(t, after, addr)
			of[addr] = &a.Balance
		}
		return b.Outcome().GasUsed, of, receipts
	}
	fullGas, full, fullReceipts := balances(nil)
	gas, less, receipts := balances(postExecution(t, lagoonBlock, [2]uint64{1, given}))
	if gas != fullGas-given || receipts[1].Common.GasUsed != fullReceipts[1].Common.GasUsed-given {
		t.Errorf("gas used: got %d, want %d less than %d", gas, given, fullGas)
	}
	last := receipts[2].Common
	if last.Type != opstack.PostExecutionType || last.Status != 1 || last.GasUsed != 0 || last.CumulativeGasUsed != gas || len(last.Logs) != 0 {
		t.Errorf("receipt of the last transaction: got %+v", last)
	}
	// 2 gwei of each gas went to the sequencer and 1 to the base fee's vault.
	for _, tt := range []struct {
		name string
		addr chain.Address
		lost int64
	}{
		{"the sequencer", sequencerVault, 2e9 * given},
		{"the base fee's vault", chain.Address{0: 0x42, 19: 0x19}, 1e9 * given},
		{"the vault for data", chain.Address{0: 0x42, 19: 0x1a}, 0},
	} {
		if got := new(uint256.Int).Sub(full[tt.addr], less[tt.addr]); !got.Eq(uint256.NewInt(uint64(tt.lost))) {
			t.Errorf("%s: got %s less, want %d", tt.name, got, tt.lost)
		}
	}
	sum := func(of map[chain.Address]*uint256.Int) *uint256.Int {
		total := new(uint256.Int)
		for _, balance := range of {
			total.Add(total, balance)
		}
		return total
	}
	if !sum(full).Eq(sum(less)) {
		t.Errorf("the sum of balances is %s with the refund, %s without", sum(less), sum(full))
	}
}

func TestRefundsThatABlockCannotHave(t *testing.T) {
	for _, tt := range []struct {
		name string
		post *opstack.Transaction
	}{
		{"of more gas than was used", postExecution(t, lagoonBlock, [2]uint64{1, 90_000})},
		{"of a deposit", postExecution(t, lagoonBlock, [2]uint64{0, 1})},
		{"of a transaction that is not there", postExecution(t, lagoonBlock, [2]uint64{3, 1})},
		{"for another block", postExecution(t, lagoonBlock+1, [2]uint64{1, 1})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t, lateConfig(t), lagoonBlock)
			s.header.Coinbase = s.users[5].addr // who could pay it from what was there
			b := s.begin(t)
			err := b.Announce(tt.post)
			if err == nil {
				_, _, err = b.Apply([]*opstack.Transaction{s.attributes(s.block), s.send(&storer, 0, 80_000, onePair), tt.post})
			}
			if invalid := new(evm.InvalidBlockError); !errors.As(err, &invalid) {
				t.Fatalf("got %v, want an invalid block", err)
			}
		})
	}
}

func TestRefundsMayNotChangeBehindOnesBack(t *testing.T) {
	s := newScene(t, lateConfig(t), lagoonBlock)
	b := s.begin(t)
	if err := b.Announce(postExecution(t, lagoonBlock, [2]uint64{1, 5})); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Apply([]*opstack.Transaction{s.attributes(s.block), s.send(&storer, 0, 80_000, onePair)}); err != nil {
		t.Fatal(err)
	}
	if err := b.Announce(postExecution(t, lagoonBlock, [2]uint64{1, 5}, [2]uint64{2, 7})); err != nil {
		t.Errorf("one more: %v", err)
	}
	if err := b.Announce(postExecution(t, lagoonBlock, [2]uint64{1, 6})); !errors.Is(err, opstack.ErrRefundsChanged) {
		t.Errorf("another: got %v, want ErrRefundsChanged", err)
	}
}

func TestKarst(t *testing.T) {
	countZeros := chaingen.Assemble("1 CLZ 0 SSTORE STOP")
	for _, tt := range []struct {
		name  string
		check func(t *testing.T, s *scene) bool
	}{
		{"a signed transaction of more than 2^24 gas is refused", func(t *testing.T, s *scene) bool {
			_, _, err := s.begin(t).Apply([]*opstack.Transaction{s.attributes(s.block), s.send(&storer, 0, 1<<24+1, nil)})
			return err != nil
		}},
		{"CLZ counts zeros", func(t *testing.T, s *scene) bool {
			receipt, _, _ := s.run(t, s.send(nil, 0, 200_000, countZeros))
			return receipt.Common.Status == 1
		}},
		{"a P256 verification costs what it does on Ethereum", func(t *testing.T, s *scene) bool {
			return s.precompileGas(t, 0x100, 160) == 6900
		}},
		{"a pairing of 301 points is refused", func(t *testing.T, s *scene) bool {
			return !s.precompileSucceeds(t, 8, 301*192) && s.precompileSucceeds(t, 8, 300*192)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.check(t, newScene(t, lateConfig(t), karstBlock-1)) {
				t.Error("before Karst")
			}
			if !tt.check(t, newScene(t, lateConfig(t), karstBlock)) {
				t.Error("not since Karst")
			}
		})
	}
	t.Run("a deposit may have more", func(t *testing.T) {
		s := newScene(t, lateConfig(t), karstBlock)
		if receipt, _, _ := s.run(t, s.deposit(&opstack.Deposit{To: &storer, Gas: 1<<24 + 1})); receipt.Common.Status != 1 {
			t.Error("it failed")
		}
	})
}

func TestP256VerificationIsThereAndWarmSinceFjord(t *testing.T) {
	for block, want := range map[uint64]uint64{forkBlocks["fjord"]: 3450, forkBlocks["isthmus"]: 3450, jovianBlock: 3450} {
		if got := newScene(t, testConfig(t), block).precompileGas(t, 0x100, 160); got != want {
			t.Errorf("block %d: got %d, want %d", block, got, want)
		}
	}
	if got := newScene(t, testConfig(t), forkBlocks["fjord"]-1).precompileGas(t, 0x100, 160); got != 2500 {
		t.Errorf("before Fjord: got %d, want the 2500 more that a cold address costs", got)
	}
}

// precompileRun calls a precompile with zeros.
func (s *scene) precompileRun(t *testing.T, precompile uint16, size uint32) (gas uint64, succeeds bool) {
	t.Helper()
	data := s.probe(precompile, size)
	clear(data[64:])
	receipt, after, _ := s.run(t, s.deposit(&opstack.Deposit{To: &precompileProbe, Gas: 40_000_000, Data: data}))
	value, err := after.Slot(precompileProbe, chain.Slot{})
	if err != nil {
		t.Fatal(err)
	}
	return receipt.Common.GasUsed, value == chain.Value{31: 1}
}

// precompileGas measures what a precompile costs beside the identity, whose cost
// is known.
func (s *scene) precompileGas(t *testing.T, precompile uint16, size uint32) uint64 {
	t.Helper()
	const identity = 4
	known, _ := s.precompileRun(t, identity, size)
	gas, _ := s.precompileRun(t, precompile, size)
	return gas - known + 15 + 3*uint64((size+31)/32)
}

func (s *scene) precompileSucceeds(t *testing.T, precompile uint16, size uint32) bool {
	t.Helper()
	_, succeeds := s.precompileRun(t, precompile, size)
	return succeeds
}

func TestCallsKnowThePrecompiles(t *testing.T) {
	s := newScene(t, testConfig(t), jovianBlock)
	gas := func(precompile uint16) uint64 {
		data := s.probe(precompile, 160)
		clear(data[64:])
		where := evm.Scene{Header: s.header, Base: s.state, Ancestors: noAncestors}
		result, err := s.rules.Calls().Call(t.Context(), where, ethereum.CallMsg{To: &precompileProbe, Data: data})
		if err != nil {
			t.Fatal(err)
		}
		return result.GasUsed
	}
	// The identity costs 15 and 3 for each of five words.
	if got := gas(0x100) - gas(4) + 30; got != 3450 {
		t.Errorf("a P256 verification costs %d, want 3450", got)
	}
	if named := s.rules.Calls().Precompiles(s.header); named["P256VERIFY"] != (chain.Address{18: 1}) {
		t.Errorf("got %v", named)
	}
}
