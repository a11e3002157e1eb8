// SPDX-License-Identifier: Apache-2.0

package devchain_test

import (
	"bytes"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"

	"glimpse/devchain"
	"glimpse/evm"
)

func TestAccountsAreTheWellKnownOnes(t *testing.T) {
	want := []string{
		"0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
		"0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC", "0x90F79bf6EB2c4f870365E785982E1f101E93b906",
		"0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65", "0x9965507D1a55bcC2695C58ba16FB37d819B0A4dc",
		"0x976EA74026E726554dB657fA54763abd0C3a0aa9", "0x14dC79964da2C08b23698B3D3cc7Ca32193d9955",
		"0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f", "0xa0Ee7A142d267C1f36714E4a8F75612F20a79720",
	}
	for i, a := range devchain.Accounts() {
		if got := a.Address.Hex(); got != want[i] {
			t.Errorf("account %d: got %s, want %s", i, got, want[i])
		}
	}
}

func TestGenesis(t *testing.T) {
	text := devchain.Genesis()
	if !bytes.Equal(text, devchain.Genesis()) {
		t.Error("got two texts, want always the same")
	}
	genesis, err := evm.ParseGenesis(text)
	if err != nil {
		t.Fatal(err)
	}
	if id := genesis.Rules.ChainID(); id != 31337 {
		t.Errorf("got chain id %d, want 31337", id)
	}
	next := genesis.Block.Number()
	if c := genesis.Rules.Config(); !c.IsOsaka(next, 0) || c.IsAmsterdam(next, 1<<62) {
		t.Errorf("got forks %v, want all up to Osaka", c)
	}
	state := newStore(t, text).last().state
	ether := new(uint256.Int).Mul(uint256.NewInt(10_000), uint256.NewInt(params.Ether))
	for i, a := range devchain.Accounts() {
		if got, _ := state.Account(a.Address); got.Balance != *ether || got.Nonce != 0 {
			t.Errorf("account %d: got %+v, want 10,000 ether", i, got)
		}
	}
	for _, addr := range []common.Address{params.BeaconRootsAddress, params.HistoryStorageAddress, params.WithdrawalQueueAddress, params.ConsolidationQueueAddress} {
		if got, _ := state.Account(addr); got.CodeHash == (common.Hash{}) {
			t.Errorf("system contract %s has no code", addr)
		}
	}
}
