// SPDX-License-Identifier: Apache-2.0

package evm_test

import (
	"encoding/json"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"

	"glimpse/chain"
	"glimpse/internal/chaingen"
)

// The DAO fork is the only change that no transaction or system call ends. It
// touches accounts that do not exist, which EIP-158 deletes again, if it is in
// force, only at the end of a block without transactions.
func TestDAOForkInAnEmptyBlock(t *testing.T) {
	one := big.NewInt(1)
	drained := params.DAODrainList()[0]
	text, err := json.Marshal(&core.Genesis{
		Config: &params.ChainConfig{
			ChainID: one, HomesteadBlock: one, DAOForkBlock: one, DAOForkSupport: true,
			EIP150Block: one, EIP155Block: one, EIP158Block: one, Ethash: new(params.EthashConfig),
		},
		GasLimit: 5_000_000, Difficulty: params.MinimumDifficulty,
		Alloc: types.GenesisAlloc{drained: {Balance: big.NewInt(5)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := chaingen.Empty(text, 2)
	if err != nil {
		t.Fatal(err)
	}
	r := newReplay(t, text)
	parts := r.state.Clone()
	b, err := r.rules.Begin(blocks[0].Header(), r.state, r.ancestors)
	if err != nil {
		t.Fatal(err)
	}
	first, _, err := b.Apply(nil)
	if err != nil {
		t.Fatal(err)
	}
	last, _, err := b.Finish(blocks[0].Body())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []*chain.Diff{first, last} {
		if err := parts.Apply(d); err != nil {
			t.Fatal(err)
		}
	}
	result := r.step(t, blocks[0])
	if got := describe(result.Diff, drained); got != "gone wiped" {
		t.Errorf("got %q for the drained account, want it gone", got)
	}
	if encoded(parts.Diff()) != encoded(r.state.Diff()) {
		t.Error("the parts lead to another state than the block")
	}
	r.step(t, blocks[1])
}
