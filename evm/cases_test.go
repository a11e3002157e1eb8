// SPDX-License-Identifier: Apache-2.0

package evm_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"

	"glimpse/chain"
)

func TestDiffOfAnAccount(t *testing.T) {
	born := func(w *world) { w.run(w.call(factory, childInit...), w.call(child, pair(5, 5)...)) }
	tests := []struct {
		name   string
		config params.ChainConfig
		before func(*world)
		txs    func(*world) []*types.Transaction
		addr   chain.Address
		want   string
		parts  []string // where they differ from what the name says
	}{
		{
			name: "a destroyed contract is gone with its storage", config: shanghai(), addr: mortal, want: "gone wiped",
			txs: func(w *world) []*types.Transaction { return []*types.Transaction{w.call(mortal)} },
		},
		{
			name: "since Cancun an old contract is not destroyed", config: cancun(), addr: mortal, want: "untouched",
			txs: func(w *world) []*types.Transaction { return []*types.Transaction{w.call(mortal)} },
		},
		{
			name: "created again as it was, it has only lost its storage", config: shanghai(), before: born, addr: child, want: "wiped 1=7",
			txs: func(w *world) []*types.Transaction {
				return []*types.Transaction{w.call(child), w.call(factory, childInit...)}
			},
			parts: []string{"gone wiped", "changed 1=7"},
		},
		{
			name: "created again and written to", config: shanghai(), before: born, addr: child, want: "wiped 1=7 5=6",
			txs: func(w *world) []*types.Transaction {
				return []*types.Transaction{w.call(child), w.call(factory, childInit...), w.call(child, pair(5, 6)...)}
			},
			parts: []string{"gone wiped", "changed 1=7", "5=6"},
		},
		{
			name: "created again and cleared", config: shanghai(), before: born, addr: child, want: "wiped",
			txs: func(w *world) []*types.Transaction {
				return []*types.Transaction{w.call(child), w.call(factory, childInit...), w.call(child, pair(1, 0)...)}
			},
			parts: []string{"gone wiped", "changed 1=7", "1=0"},
		},
		{
			name: "created again and destroyed again", config: shanghai(), before: born, addr: child, want: "gone wiped",
			txs: func(w *world) []*types.Transaction {
				return []*types.Transaction{w.call(child), w.call(factory, childInit...), w.call(child)}
			},
			parts: []string{"gone wiped", "changed 1=7", "gone wiped"},
		},
		{
			name: "written to and destroyed", config: shanghai(), before: born, addr: child, want: "gone wiped",
			txs: func(w *world) []*types.Transaction {
				return []*types.Transaction{w.call(child, pair(5, 8)...), w.call(child)}
			},
			parts: []string{"5=8", "gone wiped"},
		},
		{
			name: "created and destroyed in one block", config: shanghai(), addr: child, want: "untouched",
			txs: func(w *world) []*types.Transaction {
				return []*types.Transaction{w.call(factory, childInit...), w.call(child)}
			},
			parts: []string{"changed 1=7", "gone wiped"},
		},
		{
			name: "created and destroyed in one transaction", config: cancun(), addr: briefChild, want: "untouched",
			txs: func(w *world) []*types.Transaction { return []*types.Transaction{w.call(brief, childInit...)} },
		},
		{
			name: "a slot put back in the transaction", config: cancun(), addr: mortal, want: "untouched",
			txs: func(w *world) []*types.Transaction {
				return []*types.Transaction{w.call(mortal, slices.Concat(pair(1, 8), pair(1, 7))...)}
			},
		},
		{
			name: "a slot put back in the block", config: cancun(), addr: mortal, want: "untouched",
			txs: func(w *world) []*types.Transaction {
				return []*types.Transaction{w.call(mortal, pair(1, 8)...), w.call(mortal, pair(1, 7)...)}
			},
			parts: []string{"1=8", "1=7"},
		},
		{
			name: "a slot cleared", config: cancun(), addr: mortal, want: "1=0",
			txs: func(w *world) []*types.Transaction { return []*types.Transaction{w.call(mortal, pair(1, 0)...)} },
		},
		{
			name: "a write that was reverted", config: cancun(), addr: failing, want: "untouched",
			txs: func(w *world) []*types.Transaction { return []*types.Transaction{w.call(failing, pair(1, 8)...)} },
		},
		{
			name: "an empty account that was touched", config: cancun(), addr: empty, want: "gone wiped",
			txs: func(w *world) []*types.Transaction { return []*types.Transaction{w.call(empty)} },
		},
		{
			name: "nobody that was touched", config: cancun(), addr: chain.Address{0x99}, want: "untouched",
			txs: func(w *world) []*types.Transaction { return []*types.Transaction{w.call(chain.Address{0x99})} },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, tt.config)
			if tt.before != nil {
				tt.before(w)
			}
			parts, whole := w.run(tt.txs(w)...)
			if got := describe(whole, tt.addr); got != tt.want {
				t.Errorf("got %q for the block, want %q", got, tt.want)
			}
			for i, want := range tt.parts {
				if got := describe(parts[i], tt.addr); got != want {
					t.Errorf("got %q for transaction %d, want %q", got, i, want)
				}
			}
		})
	}
}

func TestDelegationIsCode(t *testing.T) {
	w := newWorld(t, prague())
	sender := crypto.PubkeyToAddress(w.secret.PublicKey)
	check := func(what string, want []byte) {
		t.Helper()
		account, err := w.state.Account(sender)
		if err != nil {
			t.Fatal(err)
		}
		code, err := w.state.Code(account.CodeHash)
		if err != nil || !bytes.Equal(code, want) {
			t.Errorf("%s: got code %x, %v, want %x", what, code, err, want)
		}
	}
	parts, whole := w.run(w.delegate(mortal), w.call(sender, pair(3, 4)...))
	check("delegated", types.AddressToDelegation(mortal))
	if got := describe(whole, sender); got != "changed 3=4" {
		t.Errorf("got %q for a write through the delegation, want %q", got, "changed 3=4")
	}
	if len(parts[0].Codes) != 1 || len(parts[1].Codes) != 0 || len(whole.Codes) != 1 {
		t.Errorf("got %d, %d and %d codes, want 1, 0 and 1", len(parts[0].Codes), len(parts[1].Codes), len(whole.Codes))
	}
	w.run(w.delegate(failing))
	check("redirected", types.AddressToDelegation(failing))
	w.run(w.delegate(chain.Address{}))
	check("cleared", nil)
	if value, err := w.state.Slot(sender, word(3)); err != nil || value != word(4) {
		t.Errorf("got %s, %v in the slot after clearing, want it kept", value, err)
	}
}

func TestBlockHash(t *testing.T) {
	w := newWorld(t, cancun())
	w.header.ParentHash = chain.Hash{0xbb}
	tests := []struct {
		name   string
		number uint64
		want   chain.Hash
	}{
		{"the parent is known from the header", 299, w.header.ParentHash},
		{"the one before is asked for", 298, word(298)},
		{"the last that may be asked for", 44, word(44)},
		{"one too old is zero and not asked for", 43, chain.Hash{}},
		{"the block itself is zero", 300, chain.Hash{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			number := word(tt.number)
			w.run(w.call(hashes, number[:]...))
			if got, _ := w.state.Slot(hashes, chain.Slot{}); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
