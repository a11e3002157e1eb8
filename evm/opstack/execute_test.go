// SPDX-License-Identifier: Apache-2.0

package opstack_test

import (
	"errors"
	"fmt"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"

	"glimpse/chain"
	"glimpse/evm"
	"glimpse/evm/opstack"
	"glimpse/internal/memview"
)

// at replays the recorded chain up to the block before n and returns that block.
func at(t *testing.T, n int) (*replay, *types.Header, []*opstack.Transaction) {
	t.Helper()
	blocks := readRecord(t)
	r := newReplay(t, newRules(t, testConfig(t)), newWorld(t, recordedSeed).users, blocks[0])
	for _, raw := range blocks[1:n] {
		header, txs, err := opstack.DecodeBlock(raw)
		if err != nil {
			t.Fatal(err)
		}
		result, err := r.rules.Execute(header, txs, r.head, r.state, r.ancestors, evm.Checks{Roots: r.tries})
		if err != nil {
			t.Fatal(err)
		}
		r.commit(t, header, result.Diff)
	}
	header, txs, err := opstack.DecodeBlock(blocks[n])
	if err != nil {
		t.Fatal(err)
	}
	return r, header, txs
}

// A read that fails, whichever it is, must come out as such: inside the EVM it
// looks like an empty account, and a deposit may fail without the block failing.
func TestEveryFailedReadIsReported(t *testing.T) {
	r, header, txs := at(t, 9) // with all kinds of transactions
	counting := &memview.Faulty{View: r.state}
	if _, err := r.rules.Execute(header, txs, r.head, counting, r.ancestors, evm.Checks{Receipts: true}); err != nil {
		t.Fatal(err)
	}
	if counting.Reads < 50 {
		t.Fatalf("only %d reads", counting.Reads)
	}
	for n := 1; n <= counting.Reads; n++ {
		view := &memview.Faulty{View: r.state, FailAt: n}
		_, err := r.rules.Execute(header, txs, r.head, view, r.ancestors, evm.Checks{})
		if !errors.Is(err, evm.ErrStateRead) || !errors.Is(err, memview.ErrInjected) {
			t.Errorf("read %d failed, and the execution says %v", n, err)
		}
	}
}

func TestHeadersThatAreNotOfTheBlock(t *testing.T) {
	const block = 41
	r, good, txs := at(t, block)
	other := chain.Hash{1}
	one := uint64(1)
	tests := []struct {
		name   string
		change func(h *types.Header)
	}{
		{"another parent", func(h *types.Header) { h.ParentHash = other }},
		{"another number", func(h *types.Header) { h.Number = big.NewInt(block + 1) }},
		{"the parent's time", func(h *types.Header) { h.Time = timeOf(block - 1) }},
		{"a difficulty", func(h *types.Header) { h.Difficulty = big.NewInt(1) }},
		{"no difficulty", func(h *types.Header) { h.Difficulty = nil }},
		{"a nonce", func(h *types.Header) { h.Nonce[0] = 1 }},
		{"uncles", func(h *types.Header) { h.UncleHash = other }},
		{"another base fee", func(h *types.Header) { h.BaseFee.Add(h.BaseFee, big.NewInt(1)) }},
		{"no base fee", func(h *types.Header) { h.BaseFee = nil }},
		{"extra data of Holocene", func(h *types.Header) { h.Extra = h.Extra[:9] }},
		{"extra data of another version", func(h *types.Header) { h.Extra[0] = 0 }},
		{"a denominator of zero", func(h *types.Header) { clear(h.Extra[1:5]) }},
		{"an elasticity of zero", func(h *types.Header) { clear(h.Extra[5:9]) }},
		{"an excess of blob gas", func(h *types.Header) { h.ExcessBlobGas = &one }},
		{"no excess of blob gas", func(h *types.Header) { h.ExcessBlobGas = nil }},
		{"another footprint", func(h *types.Header) { *h.BlobGasUsed++ }},
		{"no footprint", func(h *types.Header) { h.BlobGasUsed = nil }},
		{"no beacon root", func(h *types.Header) { h.ParentBeaconRoot = nil }},
		{"no withdrawals root", func(h *types.Header) { h.WithdrawalsHash = nil }},
		{"requests", func(h *types.Header) { h.RequestsHash = &other }},
		{"no requests hash", func(h *types.Header) { h.RequestsHash = nil }},
		{"a block access list", func(h *types.Header) { h.BlockAccessListHash = &other }},
		{"more gas used than there is", func(h *types.Header) { h.GasUsed = h.GasLimit + 1 }},
		{"another gas used", func(h *types.Header) { h.GasUsed++ }},
		{"other transactions", func(h *types.Header) { h.TxHash = other }},
		{"another receipts root", func(h *types.Header) { h.ReceiptHash = other }},
		{"another bloom", func(h *types.Header) { h.Bloom[0] ^= 1 }},
	}
	execute := func(h *types.Header, txs []*opstack.Transaction) error {
		_, err := r.rules.Execute(h, txs, r.head, r.state, r.ancestors, evm.Checks{Receipts: true})
		return err
	}
	if err := execute(types.CopyHeader(good), txs); err != nil {
		t.Fatalf("as it is: %v", err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := types.CopyHeader(good)
			tt.change(h)
			if invalid := new(evm.InvalidBlockError); !errors.As(execute(h, txs), &invalid) {
				t.Errorf("got %v, want an invalid block", execute(h, txs))
			}
		})
	}
	t.Run("without transactions", func(t *testing.T) {
		h := types.CopyHeader(good)
		h.TxHash = types.DeriveSha(opstack.Transactions(nil), trie.NewStackTrie(nil))
		if invalid := new(evm.InvalidBlockError); !errors.As(execute(h, nil), &invalid) {
			t.Error("accepted")
		}
	})
	t.Run("no number", func(t *testing.T) {
		h := types.CopyHeader(good)
		h.Number = nil
		if invalid := new(evm.InvalidBlockError); !errors.As(execute(h, txs), &invalid) {
			t.Error("accepted")
		}
	})
}

func TestConfigs(t *testing.T) {
	for _, config := range []opstack.Config{opstack.OPMainnet(), opstack.Unichain()} {
		rules := newRules(t, config)
		if rules.ChainID() != config.ChainID || rules.Config().Elasticity != 6 {
			t.Errorf("chain %d: got %+v", config.ChainID, rules.Config())
		}
	}
	good := testConfig(t)
	early := *good.Forks.Canyon - 1
	for _, tt := range []struct {
		name   string
		change func(*opstack.Config)
	}{
		{"no chain id", func(c *opstack.Config) { c.ChainID = 0 }},
		{"no elasticity", func(c *opstack.Config) { c.Elasticity = 0 }},
		{"no denominator", func(c *opstack.Config) { c.DenominatorCanyon = 0 }},
		{"a fork without the one before", func(c *opstack.Config) { c.Forks.Fjord = nil }},
		{"a fork before the one before", func(c *opstack.Config) { c.Forks.Ecotone = &early }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := good
			tt.change(&c)
			if rules, err := opstack.NewRules(c); err == nil {
				t.Errorf("got %+v", rules)
			}
		})
	}
}

func TestForksThatAreNotKnown(t *testing.T) {
	for _, tt := range []struct {
		name  string
		times map[string]uint64
		known bool
	}{
		{"a fork that does not change execution", map[string]uint64{"delta": 5, "Canyon": 4}, true},
		{"Regolith from the first block", map[string]uint64{"regolith": 0}, true},
		{"Regolith later", map[string]uint64{"regolith": 7}, false},
		{"a fork of the future", map[string]uint64{"canyon": 0, "mesa": 9}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := opstack.ParseForks(tt.times); (err == nil) != tt.known || err != nil && !errors.Is(err, evm.ErrUnsupported) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestBlocksBeforeBedrock(t *testing.T) {
	config := opstack.OPMainnet()
	rules := newRules(t, config)
	for _, n := range []uint64{1, uint64(config.Bedrock)} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			header := &types.Header{Number: new(big.Int).SetUint64(n), Difficulty: new(big.Int), BaseFee: new(big.Int)}
			if _, err := rules.Begin(header, nil, noAncestors); !errors.Is(err, evm.ErrUnsupported) {
				t.Errorf("got %v, want ErrUnsupported", err)
			}
		})
	}
}
