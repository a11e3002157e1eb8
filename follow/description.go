// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/params"

	"glimpse/chain"
	"glimpse/evm/opstack"
)

// An Engine is where what a block changed comes from.
type Engine string

// The engines.
const (
	Execute    Engine = "execute"     // the block is executed here
	AccessList Engine = "access-list" // EIP-7928 lists, checked by their hash
	Trace      Engine = "trace"       // the upstream's tracer
)

// ParseEngine reads the name of an Engine.
func ParseEngine(name string) (Engine, error) {
	if e := Engine(name); slices.Contains([]Engine{Execute, AccessList, Trace}, e) {
		return e, nil
	}
	return "", fmt.Errorf("engine %q: want execute, access-list or trace", name)
}

// A Description is what has to be known of a chain to follow it.
type Description struct {
	Name      string
	ID        uint64
	Genesis   chain.Hash // zero where it is not compared
	Engine    Engine
	BlockTime time.Duration

	// Config has the rules of a chain that is executed by Ethereum's, OP those
	// of one that is executed by the OP-Stack's; both are nil for one that is
	// not executed.
	Config *params.ChainConfig
	OP     *opstack.Config
}

// descriptionFile is a Description as TOML.
type descriptionFile struct {
	Name      string            `toml:"name"`
	ID        uint64            `toml:"id"`
	Genesis   string            `toml:"genesis"`
	Engine    string            `toml:"engine"`
	BlockTime string            `toml:"block-time"`
	Rules     string            `toml:"rules"`
	Forks     map[string]uint64 `toml:"forks"`
	Blobs     map[string]blobs  `toml:"blobs"`
}

type blobs struct {
	Target         int    `toml:"target"`
	Max            int    `toml:"max"`
	UpdateFraction uint64 `toml:"base-fee-update-fraction"`
}

// ParseDescription reads a chain from a TOML file: docs/operations.md explains
// it. What it does not know is an error, since it would be executed by the wrong
// rules.
func ParseDescription(text string) (*Description, error) {
	var file descriptionFile
	meta, err := toml.Decode(text, &file)
	if err != nil {
		return nil, err
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return nil, fmt.Errorf("unknown key %q", unknown[0].String())
	}
	d := &Description{Name: file.Name, ID: file.ID, Engine: Execute, BlockTime: 2 * time.Second}
	if d.ID == 0 {
		return nil, errors.New("id is missing")
	}
	if file.Engine != "" {
		if d.Engine, err = ParseEngine(file.Engine); err != nil {
			return nil, err
		}
	}
	if file.BlockTime != "" {
		if d.BlockTime, err = time.ParseDuration(file.BlockTime); err != nil || d.BlockTime <= 0 {
			return nil, fmt.Errorf("block-time %q: want a time such as 2s", file.BlockTime)
		}
	}
	if file.Genesis != "" {
		if err := d.Genesis.UnmarshalText([]byte(file.Genesis)); err != nil {
			return nil, fmt.Errorf("genesis %q: want a hash", file.Genesis)
		}
	}
	return d, file.rules(d)
}

// rules sets those of a chain that is executed.
func (f *descriptionFile) rules(d *Description) (err error) {
	switch {
	case d.Engine != Execute && len(f.Forks) > 0:
		return errors.New("forks are for chains that are executed")
	case d.Engine != Execute:
		return nil
	case f.Rules == "" || f.Rules == "ethereum":
		d.Config, err = f.config()
		return err
	case f.Rules != "op-stack":
		return fmt.Errorf("rules %q: want ethereum or op-stack", f.Rules)
	case len(f.Blobs) > 0:
		return errors.New("op-stack chains have no blobs")
	}
	forks, err := opstack.ParseForks(f.Forks)
	if err != nil {
		return err
	}
	usual := opstack.OPMainnet()
	d.OP = &opstack.Config{
		ChainID: f.ID, Forks: forks,
		Elasticity: usual.Elasticity, Denominator: usual.Denominator, DenominatorCanyon: usual.DenominatorCanyon,
	}
	return nil
}

// forkNames are the forks that have a time, in their order.
var forkNames = []string{"shanghai", "cancun", "prague", "osaka"}

// config returns Ethereum's rules with the forks of the file; those before
// Shanghai hold from the beginning.
func (f *descriptionFile) config() (*params.ChainConfig, error) {
	config := paris()
	config.ChainID = new(big.Int).SetUint64(f.ID)
	times := map[string]**uint64{
		"shanghai": &config.ShanghaiTime, "cancun": &config.CancunTime, "prague": &config.PragueTime, "osaka": &config.OsakaTime,
	}
	for name, at := range f.Forks {
		field, ok := times[name]
		if !ok {
			return nil, fmt.Errorf("fork %q: want one of %s", name, strings.Join(forkNames, ", "))
		}
		*field = &at
	}
	schedules := map[string]**params.BlobConfig{"cancun": &config.BlobScheduleConfig.Cancun, "prague": &config.BlobScheduleConfig.Prague}
	for name, b := range f.Blobs {
		field, ok := schedules[name]
		if !ok {
			return nil, fmt.Errorf("blobs of %q: want one of %s", name, strings.Join(slices.Sorted(maps.Keys(schedules)), ", "))
		}
		*field = &params.BlobConfig{Target: b.Target, Max: b.Max, UpdateFraction: b.UpdateFraction}
	}
	return config, nil
}

// Known returns the description of a chain by its name or id; ok is false where
// there is none.
func Known(name string, id uint64) (d *Description, ok bool) {
	for _, d := range known() {
		if d.Name == name || name == "" && d.ID == id {
			return d, true
		}
	}
	return nil, false
}

// known are the chains that are built in.
func known() []*Description {
	opMainnet, unichain := opstack.OPMainnet(), opstack.Unichain()
	return []*Description{
		{
			Name: "op-mainnet", ID: 10, Engine: Execute, BlockTime: 2 * time.Second, OP: &opMainnet,
			Genesis: common.HexToHash("0x7ca38a1916c42007829c55e69d3e9a73265554b586a499015373241b8a3fa48b"),
		},
		{
			Name: "unichain", ID: 130, Engine: Execute, BlockTime: time.Second, OP: &unichain,
			Genesis: common.HexToHash("0x3425162ddf41a0a1f0106d67b71828c9a9577e6ddeb94e4f33d2cde1fdc3befe"),
		},
		{
			Name: "ethereum", ID: 1, Genesis: params.MainnetGenesisHash, Engine: Execute, BlockTime: 12 * time.Second,
			Config: params.MainnetChainConfig,
		},
		{
			// Its rules have parts that only its own node can execute; its blocks
			// are 200 ms apart, and pending is latest.
			Name: "base", ID: 8453, Engine: Trace, BlockTime: 200 * time.Millisecond,
			Genesis: common.HexToHash("0xf712aa9241cc24369b143cf6dce85f0902a9731e70d66818a3a5845b296c73dd"),
		},
	}
}
