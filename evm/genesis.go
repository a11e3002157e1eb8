// SPDX-License-Identifier: Apache-2.0

package evm

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
)

// A Genesis is block 0 of a chain with its state and rules.
type Genesis struct {
	Rules *Rules
	Block *types.Block

	// Diff is the whole state of block 0.
	Diff *chain.Diff

	// Config is the chain config in the one form that ParseConfig reads back,
	// to be stored beside the chain.
	Config []byte
}

// ParseGenesis reads a genesis file in go-ethereum's format. Chains whose rules
// are not known here give ErrUnsupported.
func ParseGenesis(text []byte) (*Genesis, error) {
	var raw struct {
		Config json.RawMessage `json:"config"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("genesis: %w", err)
	}
	if len(raw.Config) == 0 || string(raw.Config) == "null" {
		return nil, errors.New("genesis: no chain config")
	}
	config, err := ParseConfig(raw.Config)
	if err != nil {
		return nil, fmt.Errorf("genesis: %w", err)
	}
	rules, err := NewRules(config)
	if err != nil {
		return nil, fmt.Errorf("genesis: %w", err)
	}
	spec := new(core.Genesis)
	if err := json.Unmarshal(text, spec); err != nil {
		return nil, fmt.Errorf("genesis: %w", err)
	}
	spec.Config = config
	if err := checkGenesis(rules, spec); err != nil {
		return nil, fmt.Errorf("genesis: %w", err)
	}
	canonical, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("genesis: encode chain config: %w", err)
	}
	return &Genesis{
		Rules:  rules,
		Block:  spec.ToBlock(),
		Diff:   allocDiff(spec.Alloc),
		Config: canonical,
	}, nil
}

// checkGenesis refuses what go-ethereum would panic over or refuse to start
// from.
func checkGenesis(rules *Rules, spec *core.Genesis) error {
	if spec.Number != 0 {
		return fmt.Errorf("block number %d, want 0", spec.Number)
	}
	for addr, account := range spec.Alloc {
		if b := account.Balance; b != nil && (b.Sign() < 0 || b.BitLen() > 256) {
			return fmt.Errorf("balance of %s does not fit 256 bits", addr)
		}
	}
	return rules.supports(new(big.Int), spec.Timestamp)
}

// allocDiff keeps accounts that are empty: a genesis may list them, and they
// count for the state root.
func allocDiff(alloc types.GenesisAlloc) *chain.Diff {
	diff := new(chain.Diff)
	codes := make(map[chain.Hash]bool)
	for addr, given := range alloc {
		change := chain.AccountDiff{
			Address: addr,
			Changed: true,
			Account: chain.Account{Exists: true, Nonce: given.Nonce},
		}
		if given.Balance != nil {
			change.Account.Balance.SetFromBig(given.Balance)
		}
		if len(given.Code) > 0 {
			code := chain.NewCode(given.Code)
			change.Account.CodeHash = code.Hash
			if !codes[code.Hash] {
				codes[code.Hash] = true
				diff.Codes = append(diff.Codes, code)
			}
		}
		for slot, value := range given.Storage {
			if value != (chain.Value{}) {
				change.Slots = append(change.Slots, chain.SlotDiff{Slot: slot, Value: value})
			}
		}
		diff.Accounts = append(diff.Accounts, change)
	}
	diff.Sort()
	return diff
}
