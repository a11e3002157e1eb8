// SPDX-License-Identifier: Apache-2.0

// Package chaingen makes random but valid chains for tests, with go-ethereum's
// own block maker, so that they are an oracle for glimpse's execution. A chain
// is the same for the same seed.
//
// Its blocks deploy and destroy contracts, create them again at the same
// address, set and clear slots, put them back, revert, and use every kind of
// transaction that their fork knows.
package chaingen

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"

	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

// Options shape a chain.
type Options struct {
	// Forks is when which rules begin; the zero value is Modern.
	Forks Forks

	// Actions is how many things happen in a block, most of which are one
	// transaction; 0 means 6.
	Actions int
}

// Forks is a fork schedule.
type Forks int

const (
	// Modern is proof of stake from genesis. It goes through Shanghai, where
	// contracts really are destroyed, Cancun, Prague and Osaka, a quarter of
	// the chain each.
	Modern Forks = iota

	// Newest has the rules of Osaka from genesis.
	Newest

	// Amsterdam has the rules of Amsterdam, with block access lists, from
	// genesis. go-ethereum before 1.17.10 has other ones.
	Amsterdam

	// Historic is proof of work. It goes from Frontier to London, with the DAO
	// fork and uncles, in equal parts.
	Historic
)

// secondsPerBlock is what core.GenerateChain spaces blocks by.
const secondsPerBlock = 10

// genesisTime is long ago, since proof-of-work headers must not be of the future.
const genesisTime = 1_600_000_000

const chainID = 7771

// Generate returns the genesis file and the blocks from 1 on of a chain.
func Generate(seed uint64, blocks int, o Options) (genesis []byte, chain []*types.Block) {
	if o.Actions == 0 {
		o.Actions = 6
	}
	spec := &core.Genesis{
		Config:     o.Forks.config(blocks),
		Timestamp:  genesisTime,
		GasLimit:   30_000_000,
		Difficulty: new(big.Int),
		Alloc:      contracts(),
	}
	if o.Forks == Historic {
		spec.Difficulty.Set(params.MinimumDifficulty)
		spec.Alloc[params.DAODrainList()[0]] = types.Account{Balance: big.NewInt(12345)}
	} else {
		for addr, account := range core.SystemContractAllocs() {
			spec.Alloc[addr] = account
		}
	}
	g := &generator{
		random:  rand.New(rand.NewPCG(seed, 0)),
		config:  spec.Config,
		actions: o.Actions,
		keys:    newKeys(seed),
	}
	for _, key := range g.keys {
		spec.Alloc[key.addr] = types.Account{Balance: new(big.Int).Lsh(big.NewInt(1), 100)}
	}
	genesis, err := json.Marshal(spec)
	if err != nil {
		panic(fmt.Sprintf("encode genesis: %v", err)) // it is made above
	}
	_, chain, _ = core.GenerateChainWithGenesis(spec, beacon.New(ethash.NewFaker()), blocks, g.block)
	return genesis, chain
}

func (f Forks) config(blocks int) *params.ChainConfig {
	c := &params.ChainConfig{ChainID: big.NewInt(chainID), BlobScheduleConfig: params.DefaultBlobSchedule, Ethash: new(params.EthashConfig)}
	byNumber := []**big.Int{
		&c.HomesteadBlock, &c.DAOForkBlock, &c.EIP150Block, &c.EIP155Block, &c.EIP158Block, &c.ByzantiumBlock,
		&c.ConstantinopleBlock, &c.PetersburgBlock, &c.IstanbulBlock, &c.BerlinBlock, &c.LondonBlock,
	}
	if f == Historic {
		c.DAOForkSupport = true
		for i, fork := range byNumber {
			*fork = big.NewInt(int64((i + 1) * blocks / (len(byNumber) + 1)))
		}
		return c
	}
	for _, fork := range byNumber {
		*fork = new(big.Int)
	}
	c.DAOForkBlock = nil
	c.TerminalTotalDifficulty = new(big.Int)
	byTime := []**uint64{&c.ShanghaiTime, &c.CancunTime, &c.PragueTime, &c.OsakaTime}
	if f == Amsterdam {
		byTime = append(byTime, &c.AmsterdamTime)
	}
	for i, fork := range byTime {
		*fork = new(uint64)
		if i > 0 && f == Modern {
			**fork = genesisTime + uint64(i*blocks/len(byTime)*secondsPerBlock)
		}
	}
	return c
}
