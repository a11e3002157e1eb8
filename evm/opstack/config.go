// SPDX-License-Identifier: Apache-2.0

package opstack

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/params"

	"glimpse/chain"
	"glimpse/evm"
)

// A Config describes one OP-Stack chain.
type Config struct {
	ChainID uint64
	Forks   Forks

	// Bedrock is the first block of the chain as it is now: 0, but for chains
	// that were something else before. Its own state is given, not executed.
	Bedrock chain.Number

	// Elasticity and the denominators rule the base fee until the headers of
	// Holocene say it themselves.
	Elasticity        uint64
	Denominator       uint64
	DenominatorCanyon uint64
}

// Forks are the times from which blocks follow the rules of each fork; nil is
// never, and 0 from the first block. Regolith's always hold.
type Forks struct {
	Canyon, Ecotone, Fjord, Granite, Holocene, Isthmus, Jovian, Karst, Lagoon *uint64
}

// A namedFork is one of Forks.
type namedFork struct {
	name string
	time **uint64
}

// byName lists the forks in their order.
func (f *Forks) byName() []namedFork {
	return []namedFork{
		{"canyon", &f.Canyon}, {"ecotone", &f.Ecotone}, {"fjord", &f.Fjord}, {"granite", &f.Granite},
		{"holocene", &f.Holocene}, {"isthmus", &f.Isthmus}, {"jovian", &f.Jovian}, {"karst", &f.Karst},
		{"lagoon", &f.Lagoon},
	}
}

// ParseForks takes fork times by their names in lower case, such as "jovian".
// Forks that change nothing about execution are passed over; a name that is not
// known gives evm.ErrUnsupported, for without it the blocks after that fork would
// be executed by the wrong rules.
func ParseForks(times map[string]uint64) (Forks, error) {
	var forks Forks
	left := make(map[string]uint64, len(times))
	for name, time := range times {
		left[strings.ToLower(name)] = time
	}
	for _, fork := range forks.byName() {
		if time, ok := left[fork.name]; ok {
			*fork.time = &time
			delete(left, fork.name)
		}
	}
	if time, ok := left["regolith"]; ok && time != 0 {
		return Forks{}, fmt.Errorf("%w: blocks before Regolith", evm.ErrUnsupported)
	}
	for _, name := range []string{"bedrock", "regolith", "delta", "pectra_blob_schedule"} {
		delete(left, name)
	}
	for name := range left {
		return Forks{}, fmt.Errorf("%w: the fork %q", evm.ErrUnsupported, name)
	}
	return forks, nil
}

// check refuses forks out of order: each contains the one before.
func (f *Forks) check() error {
	forks := f.byName()
	for i, fork := range forks[1:] {
		before := forks[i]
		switch {
		case *fork.time == nil:
		case *before.time == nil:
			return fmt.Errorf("fork %s without %s", fork.name, before.name)
		case **fork.time < **before.time:
			return fmt.Errorf("fork %s at %d, before %s at %d", fork.name, **fork.time, before.name, **before.time)
		}
	}
	return nil
}

// OPMainnet returns the description of OP Mainnet.
func OPMainnet() Config {
	return Config{
		ChainID: 10,
		Bedrock: 105235063,
		Forks: Forks{
			Canyon: at(1704992401), Ecotone: at(1710374401), Fjord: at(1720627201), Granite: at(1726070401),
			Holocene: at(1736445601), Isthmus: at(1746806401), Jovian: at(1764691201), Karst: at(1783526401),
		},
		Elasticity: 6, Denominator: 50, DenominatorCanyon: 250,
	}
}

// Unichain returns the description of Unichain.
func Unichain() Config {
	return Config{
		ChainID: 130,
		Forks: Forks{
			Canyon: at(0), Ecotone: at(0), Fjord: at(0), Granite: at(0),
			Holocene: at(1736445601), Isthmus: at(1746806401), Jovian: at(1764691201), Karst: at(1783526401),
		},
		Elasticity: 6, Denominator: 50, DenominatorCanyon: 250,
	}
}

func at(time uint64) *uint64 { return &time }

// ethereum returns the forks of Ethereum that the chain's contain. The blob
// schedule is there because go-ethereum wants one; with no excess, which is
// checked, the blob fee is 1 by any schedule, as these chains have it.
func (c *Config) ethereum() *params.ChainConfig {
	return &params.ChainConfig{
		ChainID:                 new(big.Int).SetUint64(c.ChainID),
		HomesteadBlock:          new(big.Int),
		EIP150Block:             new(big.Int),
		EIP155Block:             new(big.Int),
		EIP158Block:             new(big.Int),
		ByzantiumBlock:          new(big.Int),
		ConstantinopleBlock:     new(big.Int),
		PetersburgBlock:         new(big.Int),
		IstanbulBlock:           new(big.Int),
		MuirGlacierBlock:        new(big.Int),
		BerlinBlock:             new(big.Int),
		LondonBlock:             new(big.Int),
		ArrowGlacierBlock:       new(big.Int),
		GrayGlacierBlock:        new(big.Int),
		MergeNetsplitBlock:      new(big.Int),
		TerminalTotalDifficulty: new(big.Int),
		ShanghaiTime:            c.Forks.Canyon,
		CancunTime:              c.Forks.Ecotone,
		PragueTime:              c.Forks.Isthmus,
		OsakaTime:               c.Forks.Karst,
		BlobScheduleConfig: &params.BlobScheduleConfig{
			Cancun: params.DefaultCancunBlobConfig,
			Prague: params.DefaultPragueBlobConfig,
		},
	}
}
