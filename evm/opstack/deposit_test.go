// SPDX-License-Identifier: Apache-2.0

package opstack_test

import (
	"errors"
	"fmt"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"

	"glimpse/chain"
	"glimpse/evm"
	"glimpse/evm/opstack"
	"glimpse/internal/chaingen"
	"glimpse/internal/memview"
)

// A scene is a block on the genesis state, at a height of the test chain.
type scene struct {
	*world
	rules  *opstack.Rules
	state  *memview.State
	block  uint64
	header *types.Header
}

func newScene(t *testing.T, config opstack.Config, block uint64) *scene {
	t.Helper()
	s := &scene{world: newWorld(t, 1), rules: newRules(t, config), state: memview.New(), block: block}
	if err := s.state.Apply(allocDiff(genesisAlloc(s.users))); err != nil {
		t.Fatal(err)
	}
	s.header = &types.Header{
		Number: new(big.Int).SetUint64(block), Time: timeOf(block), GasLimit: gasLimit, BaseFee: big.NewInt(1e9),
		Coinbase: sequencerVault, ParentHash: chain.Hash{1}, ParentBeaconRoot: &chain.Hash{2},
	}
	s.rules.Complete(s.header)
	return s
}

func noAncestors(n chain.Number) (chain.Hash, error) {
	return chain.Hash{}, fmt.Errorf("asked for the hash of block %d", n)
}

func (s *scene) begin(t *testing.T) *opstack.Block {
	t.Helper()
	b, err := s.rules.Begin(s.header, s.state, noAncestors)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// run executes transactions after the block's attributes and returns the receipt
// of the last one and the state afterwards.
func (s *scene) run(t *testing.T, txs ...*opstack.Transaction) (*opstack.Receipt, *memview.State, *chain.Diff) {
	t.Helper()
	b := s.begin(t)
	if _, _, err := b.Apply([]*opstack.Transaction{s.attributes(s.block)}); err != nil {
		t.Fatal(err)
	}
	_, receipts, err := b.Apply(txs)
	if err != nil {
		t.Fatal(err)
	}
	diff, err := b.Diff()
	if err != nil {
		t.Fatal(err)
	}
	after := s.state.Clone()
	if err := after.Apply(diff); err != nil {
		t.Fatal(err)
	}
	return receipts[len(receipts)-1], after, diff
}

func account(t *testing.T, view chain.View, addr chain.Address) chain.Account {
	t.Helper()
	a, err := view.Account(addr)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

const canyonBlock, jovianBlock = 5, 40

func TestDeposits(t *testing.T) {
	from, to := chain.Address{0: 0xaa}, chain.Address{0: 0xab}
	created := crypto.CreateAddress(from, 0)
	mint := uint256.NewInt(1000)
	tests := []struct {
		name      string
		deposit   opstack.Deposit
		succeeds  bool
		gas       uint64 // used
		left      uint64 // of From's balance
		received  uint64 // by to
		slot      bool   // the storer's slot 1 is written
		isCreated bool
	}{
		{"what is minted is there when it is spent", opstack.Deposit{To: &to, Mint: mint, Value: uint256.NewInt(300), Gas: 21_000}, true, 21_000, 700, 300, false, false},
		{"without a mint there is nothing to spend, and all gas is used", opstack.Deposit{To: &to, Value: uint256.NewInt(300), Gas: 50_000}, false, 50_000, 0, 0, false, false},
		{"more than was minted cannot be spent, but what was minted stays", opstack.Deposit{To: &to, Mint: mint, Value: uint256.NewInt(1001), Gas: 50_000}, false, 50_000, 1000, 0, false, false},
		{"less gas than it takes to begin fails and keeps what was minted", opstack.Deposit{To: &to, Mint: mint, Value: uint256.NewInt(1), Gas: 20_999}, false, 20_999, 1000, 0, false, false},
		{"a revert takes the value back, keeps what was minted and uses the gas it used", opstack.Deposit{To: &reverter, Mint: mint, Value: uint256.NewInt(5), Gas: 100_000}, false, 21_035, 1000, 0, false, false},
		{"a call stores", opstack.Deposit{To: &storer, Gas: 100_000, Data: onePair}, true, 44_227, 0, 0, true, false},
		{"more gas than a signed transaction may have", opstack.Deposit{To: &to, Gas: 30_000_000}, true, 21_000, 0, 0, false, false},
		{"a contract is created", opstack.Deposit{Mint: mint, Value: uint256.NewInt(9), Gas: 200_000, Data: chaingen.Deployer("", []byte{0xfe})}, true, 53_426, 991, 0, false, true},
		{"a contract is not created by code that fails", opstack.Deposit{Mint: mint, Value: uint256.NewInt(9), Gas: 60_000, Data: chaingen.Assemble("INVALID")}, false, 60_000, 1000, 0, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t, testConfig(t), jovianBlock)
			d := tt.deposit
			d.From = from
			receipt, after, _ := s.run(t, s.deposit(&d))
			if got := receipt.Common.Status == types.ReceiptStatusSuccessful; got != tt.succeeds {
				t.Errorf("succeeds: got %t, want %t", got, tt.succeeds)
			}
			if got := receipt.Common.GasUsed; got != tt.gas {
				t.Errorf("gas used: got %d, want %d", got, tt.gas)
			}
			sender := account(t, after, from)
			if sender.Nonce != 1 || sender.Balance.Uint64() != tt.left {
				t.Errorf("sender: got %+v, want nonce 1 and balance %d", sender, tt.left)
			}
			if got := account(t, after, to).Balance; got != *uint256.NewInt(tt.received) {
				t.Errorf("received: got %s, want %d", &got, tt.received)
			}
			if value, err := after.Slot(storer, chain.Slot{31: 1}); err != nil || (value != chain.Value{}) != tt.slot {
				t.Errorf("slot: got %s (%v), want it written: %t", value, err, tt.slot)
			}
			if got := account(t, after, created).CodeHash != (chain.Hash{}); got != tt.isCreated {
				t.Errorf("contract created: got %t, want %t", got, tt.isCreated)
			}
			for _, vault := range []chain.Address{sequencerVault, {0: 0x42, 19: 0x19}, {0: 0x42, 19: 0x1a}, {0: 0x42, 19: 0x1b}} {
				if account(t, after, vault).Exists {
					t.Errorf("a deposit paid into %s", vault)
				}
			}
		})
	}
}

var onePair = append(append(make([]byte, 31), 1), append(make([]byte, 31), 7)...)

func TestDepositReceipts(t *testing.T) {
	from := chain.Address{0: 0xaa}
	for _, tt := range []struct {
		name    string
		block   uint64
		nonce   bool
		version bool
	}{
		{"before Canyon a receipt has a nonce that the root does not commit to", canyonBlock - 2, true, false},
		{"since Canyon the root commits to nonce and version", canyonBlock, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t, testConfig(t), tt.block)
			first := s.deposit(&opstack.Deposit{From: from, To: &storer, Gas: 100_000})
			receipt, _, _ := s.run(t, first, s.deposit(&opstack.Deposit{From: from, To: &storer, Gas: 100_000}))
			if receipt.DepositNonce == nil || *receipt.DepositNonce != 1 {
				t.Errorf("nonce: got %v, want 1", receipt.DepositNonce)
			}
			if got := receipt.DepositVersion != nil; got != tt.version {
				t.Errorf("version: got %t, want %t", got, tt.version)
			}
			other := *receipt
			other.DepositNonce = new(uint64)
			if same := string(other.Encode()) == string(receipt.Encode()); same == tt.version {
				t.Errorf("another nonce encodes the same: %t", same)
			}
		})
	}
}

// TestReceiptEncoding pins the bytes that receipts roots commit to.
func TestReceiptEncoding(t *testing.T) {
	nonce, version := uint64(4012991), uint64(1)
	receipt := &opstack.Receipt{
		Common:       &types.Receipt{Type: opstack.DepositType, Status: 1, CumulativeGasUsed: 46913, Logs: []*types.Log{}},
		DepositNonce: &nonce, DepositVersion: &version,
	}
	const head, tail = "7ef9010d0182b741b90100", "c0833d3bbf01"
	if got := fmt.Sprintf("%x", receipt.Encode()); got[:len(head)] != head || got[len(got)-len(tail):] != tail {
		t.Errorf("got %s, want %s…%s", got, head, tail)
	}
	signed := &opstack.Receipt{Common: &types.Receipt{Type: 2, Status: 0, CumulativeGasUsed: 1}}
	want, err := signed.Common.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if got := signed.Encode(); string(got) != string(want) {
		t.Errorf("of a signed transaction: got %x, want %x", got, want)
	}
}

func TestTransactionsThatMustNotBeInABlock(t *testing.T) {
	blob := &types.BlobTx{ChainID: uint256.NewInt(chainID), GasFeeCap: uint256.NewInt(2e9), Gas: 21_000, BlobFeeCap: uint256.NewInt(1), BlobHashes: []chain.Hash{{1}}}
	for _, tt := range []struct {
		name  string
		block uint64
		tx    func(s *scene) *opstack.Transaction
	}{
		{"a system transaction", jovianBlock, func(s *scene) *opstack.Transaction {
			return s.deposit(&opstack.Deposit{To: &storer, Gas: 100_000, System: true})
		}},
		{"a deposit of more gas than the block has", jovianBlock, func(s *scene) *opstack.Transaction {
			return s.deposit(&opstack.Deposit{To: &storer, Gas: gasLimit})
		}},
		{"a blob transaction", jovianBlock, func(s *scene) *opstack.Transaction { return s.sign(s.users[0], blob) }},
		{"one whose sender has enough for gas but not for data", jovianBlock, func(s *scene) *opstack.Transaction {
			return s.poor(21_000 * 1_000_000_000)
		}},
		{"one that pays no fee at all", jovianBlock, func(s *scene) *opstack.Transaction {
			return s.sign(s.users[0], &types.LegacyTx{GasPrice: new(big.Int), Gas: 21_000, To: &storer})
		}},
		{"one in the block that brings Jovian", 30, func(s *scene) *opstack.Transaction {
			return s.send(&storer, 0, 100_000, nil)
		}},
		{"a post-execution transaction before Lagoon", jovianBlock, func(s *scene) *opstack.Transaction {
			return postExecution(t, jovianBlock, [2]uint64{1, 5})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t, testConfig(t), tt.block)
			b := s.begin(t)
			_, _, err := b.Apply([]*opstack.Transaction{s.attributes(tt.block), tt.tx(s)})
			if invalid := new(evm.InvalidBlockError); !errors.As(err, &invalid) {
				t.Fatalf("got %v, want an invalid block", err)
			}
			if _, _, again := b.Apply(nil); !errors.Is(again, err) {
				t.Errorf("afterwards: got %v, want the same error", again)
			}
		})
	}
	t.Run("a first one that is not a deposit", func(t *testing.T) {
		s := newScene(t, testConfig(t), jovianBlock)
		_, _, err := s.begin(t).Apply([]*opstack.Transaction{s.send(&storer, 0, 100_000, nil)})
		if invalid := new(evm.InvalidBlockError); !errors.As(err, &invalid) {
			t.Fatalf("got %v, want an invalid block", err)
		}
	})
	t.Run("attributes in a form that is not known", func(t *testing.T) {
		s := newScene(t, testConfig(t), jovianBlock)
		unknown := s.deposit(&opstack.Deposit{From: depositor, To: &l1Block, Gas: 1_000_000, Data: make([]byte, 200)})
		if _, _, err := s.begin(t).Apply([]*opstack.Transaction{unknown}); !errors.Is(err, evm.ErrUnsupported) {
			t.Fatalf("got %v, want ErrUnsupported", err)
		}
	})
}

// poor has a user who owns no more than balance send a transfer at 1 gwei.
func (s *scene) poor(balance uint64) *opstack.Transaction {
	u := newUser(s.t, 77)
	diff := &chain.Diff{Accounts: []chain.AccountDiff{{Address: u.addr, Changed: true, Account: chain.Account{Exists: true, Balance: *uint256.NewInt(balance)}}}}
	if err := s.state.Apply(diff); err != nil {
		s.t.Fatal(err)
	}
	return s.sign(u, &types.LegacyTx{GasPrice: big.NewInt(1e9), Gas: 21_000, To: &storer})
}
