// SPDX-License-Identifier: Apache-2.0

package opstack

import (
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/evm"
	"glimpse/internal/parallel"
)

// Rules are what is fixed for one chain. They are safe for concurrent use.
type Rules struct {
	config   Config
	ethereum *evm.Rules // with this chain's precompiles
}

// NewRules returns the rules for config, whose forks must be in order. A chain
// id or base fee parameters of zero are an error.
func NewRules(config Config) (*Rules, error) {
	switch {
	case config.ChainID == 0:
		return nil, fmt.Errorf("chain config: no chain id")
	case config.Elasticity == 0 || config.Denominator == 0 || config.DenominatorCanyon == 0:
		return nil, fmt.Errorf("chain config: elasticity %d, base fee denominators %d and %d", config.Elasticity, config.Denominator, config.DenominatorCanyon)
	}
	if err := config.Forks.check(); err != nil {
		return nil, fmt.Errorf("chain config: %w", err)
	}
	ethereum, err := evm.NewRules(config.ethereum())
	if err != nil {
		return nil, err
	}
	ethereum = ethereum.WithPrecompiles(precompileSets(&config.Forks).at)
	return &Rules{config: config, ethereum: ethereum}, nil
}

// Config returns the chain's description, whose times must not be modified.
func (r *Rules) Config() Config { return r.config }

// ChainID returns the chain's id.
func (r *Rules) ChainID() uint64 { return r.config.ChainID }

// Calls returns what runs single messages by the rules of the chain, as for
// eth_call. It must not execute blocks, whose rules it does not know, and like
// on other nodes its messages pay for gas alone.
func (r *Rules) Calls() *evm.Rules { return r.ethereum }

// RecoverSenders recovers the senders of signed transactions on all cores and
// leaves them in the transactions, where execution finds them. A signature that
// gives no sender is left for execution to refuse.
func (r *Rules) RecoverSenders(header *types.Header, txs []*Transaction) {
	signer := r.ethereum.Signer(header)
	parallel.Do(len(txs), func(i int) {
		if signed := txs[i].signed; signed != nil {
			_, _ = types.Sender(signer, signed) // execution asks again and reports
		}
	})
}

// supports fails for blocks that came before the rules known here. Forks after
// them have no name in a Config, and ParseForks refuses those.
func (r *Rules) supports(header *types.Header) error {
	if header.Number == nil || !header.Number.IsUint64() {
		return &evm.InvalidBlockError{What: "header without a number"}
	}
	if n := chain.Number(header.Number.Uint64()); n <= r.config.Bedrock {
		return fmt.Errorf("%w: block %d is not after Bedrock, which is block %d", evm.ErrUnsupported, n, r.config.Bedrock)
	}
	return nil
}

// active reports whether a fork holds at a time.
func active(fork *uint64, time uint64) bool { return fork != nil && *fork <= time }
