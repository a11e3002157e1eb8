// SPDX-License-Identifier: Apache-2.0

package evm

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strings"

	"github.com/ethereum/go-ethereum/consensus"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
)

// Rules are what is fixed for one chain: its fork schedule and how blocks are
// rewarded and verified. They are safe for concurrent use.
type Rules struct {
	config *params.ChainConfig
	engine consensus.Engine

	// precompiles of chains that have others than Ethereum; else nil.
	precompiles func(time uint64) vm.PrecompiledContracts

	// Jump destinations belong to bytecode, not to a block: contracts that are
	// called in every block are analysed once.
	jumpDests vm.JumpDestCache

	tolerant bool // see Tolerant
}

// NewRules returns the rules for config, which is kept and must not be modified.
// A chain without a proof-of-work or proof-of-stake engine, or with forks that
// go-ethereum names but does not define yet from its first block, gives
// ErrUnsupported.
func NewRules(config *params.ChainConfig) (*Rules, error) {
	if config.ChainID == nil || !config.ChainID.IsUint64() {
		return nil, fmt.Errorf("%w: chain id %v", ErrUnsupported, config.ChainID)
	}
	if config.Clique != nil {
		return nil, fmt.Errorf("%w: clique consensus", ErrUnsupported)
	}
	if config.EnableUBTAtGenesis {
		return nil, fmt.Errorf("%w: binary trie at genesis", ErrUnsupported)
	}
	if err := config.CheckConfigForkOrder(); err != nil {
		return nil, fmt.Errorf("chain config: %w", err)
	}
	return &Rules{
		config:    config,
		engine:    beacon.New(ethash.NewFaker()), // a faker skips the seal only
		jumpDests: core.NewJumpDestCache(),
	}, nil
}

// Tolerant returns the rules for blocks that somebody else has accepted. What a
// header says of its time, its fees and its limits is believed, since nodes for
// development, and chains with several blocks in a second, have their own ideas;
// and the contracts of EIP-7002 and EIP-7251 may be missing, which is a block
// without requests. What execution gives is compared with the header as ever.
func (r *Rules) Tolerant() *Rules {
	tolerant := *r
	tolerant.tolerant = true
	return &tolerant
}

// Config returns the chain config, which must not be modified.
func (r *Rules) Config() *params.ChainConfig { return r.config }

// ChainID returns the chain's id.
func (r *Rules) ChainID() uint64 { return r.config.ChainID.Uint64() }

// Signer returns what recovers the senders of the transactions in a block with
// this header.
func (r *Rules) Signer(header *types.Header) types.Signer {
	return types.MakeSigner(r.config, header.Number, header.Time)
}

// supports fails where the block belongs to a fork whose rules are not
// complete in go-ethereum.
func (r *Rules) supports(number *big.Int, time uint64) error {
	switch {
	case r.config.IsBogota(number, time):
		return fmt.Errorf("%w: block %v is past the Bogota fork", ErrUnsupported, number)
	case r.config.IsUBT(number, time):
		return fmt.Errorf("%w: block %v is past the switch to binary tries", ErrUnsupported, number)
	}
	return nil
}

// ParseConfig reads a chain config in go-ethereum's JSON form. A fork that this
// version has never heard of gives ErrUnsupported: without it the blocks after
// that fork would be executed by the wrong rules.
func ParseConfig(text []byte) (*params.ChainConfig, error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(text, &given); err != nil {
		return nil, fmt.Errorf("chain config: %w", err)
	}
	known := configKeys()
	for key, value := range given {
		isFork := strings.HasSuffix(key, "Time") || strings.HasSuffix(key, "Block")
		if isFork && !known[strings.ToLower(key)] && string(value) != "null" {
			return nil, fmt.Errorf("%w: chain config names the fork %q", ErrUnsupported, key)
		}
	}
	config := new(params.ChainConfig)
	if err := json.Unmarshal(text, config); err != nil {
		return nil, fmt.Errorf("chain config: %w", err)
	}
	return config, nil
}

// configKeys returns the member names of a chain config, in lower case because
// encoding/json matches them without regard to case.
func configKeys() map[string]bool {
	keys := make(map[string]bool)
	t := reflect.TypeFor[params.ChainConfig]()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		keys[strings.ToLower(name)] = true
	}
	return keys
}
