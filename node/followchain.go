// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/params"

	"glimpse/chain"
	"glimpse/devchain"
	"glimpse/evm"
	"glimpse/evm/opstack"
	"glimpse/follow"
	"glimpse/follow/upstream"
)

// A followedChain is what is known of a chain.
type followedChain struct {
	name      string
	id        uint64
	genesis   chain.Hash
	engine    follow.Engine
	blockTime time.Duration
	rules     *evm.Rules     // for calls too; nil where nothing can be executed
	op        *opstack.Rules // nil where blocks are executed by Ethereum's rules
	config    []byte         // the rules as they are stored
}

// ethereum returns the rules as ethapi needs them, which are those of the newest
// fork where others hold.
func (f *followedChain) ethereum() *params.ChainConfig {
	if f.rules != nil {
		return f.rules.Config()
	}
	return params.MergedTestChainConfig
}

// traceRules say what no trace of the chain shows. On OP-Stack chains, fees go to
// vaults that a tracer does not look at.
func (f *followedChain) traceRules() upstream.TraceRules {
	if f.rules != nil && f.op == nil {
		return upstream.TraceRules{Requests: true}
	}
	vault := func(last string) chain.Address {
		return common.HexToAddress("0x42000000000000000000000000000000000000" + last)
	}
	return upstream.TraceRules{Unseen: []chain.Address{vault("11"), vault("19"), vault("1a"), vault("1b")}}
}

// describe finds out which chain the upstream has and how to follow it: by its
// name or file where one is given, by its id, or by what the upstream tells of
// its forks.
func (c *FollowConfig) describe(pool *upstream.Pool) (*followedChain, error) {
	d, err := c.description(pool)
	if err != nil {
		return nil, err
	}
	if d.ID != pool.ChainID() {
		return nil, fmt.Errorf("chain %s has id %d, but the upstream has %d", d.Name, d.ID, pool.ChainID())
	}
	if d.Genesis != (chain.Hash{}) && d.Genesis != pool.Genesis() {
		return nil, fmt.Errorf("chain %s has genesis %s, but the upstream has %s", d.Name, d.Genesis, pool.Genesis())
	}
	if c.Engine != "" && c.Engine != "auto" {
		if d.Engine, err = follow.ParseEngine(c.Engine); err != nil {
			return nil, err
		}
	}
	f := &followedChain{name: d.Name, id: pool.ChainID(), genesis: pool.Genesis(), engine: d.Engine, blockTime: d.BlockTime, config: []byte("{}")}
	if d.OP != nil {
		if f.op, err = opstack.NewRules(*d.OP); err != nil {
			return nil, err
		}
		f.rules = f.op.Calls()
	}
	if d.Config != nil {
		rules, err := evm.NewRules(d.Config)
		if err != nil {
			return nil, err
		}
		f.rules = rules.Tolerant()
		if f.config, err = json.Marshal(d.Config); err != nil {
			return nil, err
		}
	}
	if err := f.check(pool.Can()); err != nil {
		return nil, err
	}
	c.Log.Info("chain", "name", f.name, "id", d.ID, "engine", f.engine, "block-time", f.blockTime)
	return f, nil
}

// check refuses an engine that cannot work here.
func (f *followedChain) check(can *upstream.Capabilities) error {
	switch {
	case can == nil:
		return upstream.ErrUnavailable
	case f.engine == follow.Execute && f.rules == nil:
		return fmt.Errorf("the rules of chain %s are not known here: use --engine trace", f.name)
	case f.engine == follow.Trace && !can.Traces():
		return errors.New("the upstream does not trace: it needs debug_traceBlockByNumber with the prestateTracer in diff mode")
	case f.engine == follow.AccessList && !can.AccessLists:
		return errors.New("the upstream has no access lists: it needs eth_getBlockAccessList")
	}
	return nil
}

func (c *FollowConfig) description(pool *upstream.Pool) (*follow.Description, error) {
	if c.Chain != "" && c.Chain != "auto" {
		if d, ok := follow.Known(c.Chain, 0); ok {
			return d, nil
		}
		text, err := os.ReadFile(c.Chain)
		if err != nil {
			return nil, fmt.Errorf("chain %q is neither built in nor a file: %w", c.Chain, err)
		}
		d, err := follow.ParseDescription(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Chain, err)
		}
		return d, nil
	}
	if d, ok := devDescription(pool); ok {
		return d, nil
	}
	if d, ok := follow.Known("", pool.ChainID()); ok {
		return d, nil
	}
	can := pool.Can()
	if can == nil || can.Config == nil {
		return nil, fmt.Errorf("chain %d is not known here and the upstream has no eth_config: give its forks with --chain FILE, or use a known one", pool.ChainID())
	}
	config, err := follow.ScheduleOf(can.Config)
	if err != nil {
		return nil, fmt.Errorf("chain %d: %w; give its forks with --chain FILE", pool.ChainID(), err)
	}
	return &follow.Description{
		Name: fmt.Sprintf("chain %d", pool.ChainID()), ID: pool.ChainID(), Engine: follow.Execute, BlockTime: 2 * time.Second, Config: config,
	}, nil
}

// devDescription is of the embedded chain, which is known by its genesis: others
// use the same id.
func devDescription(pool *upstream.Pool) (*follow.Description, bool) {
	genesis, err := evm.ParseGenesis(devchain.Genesis())
	if err != nil || genesis.Block.Hash() != pool.Genesis() {
		return nil, false
	}
	return &follow.Description{
		Name: "dev", ID: genesis.Rules.ChainID(), Engine: follow.Execute, BlockTime: 2 * time.Second, Config: genesis.Rules.Config(),
	}, true
}
