// SPDX-License-Identifier: Apache-2.0

package devchain

import (
	"encoding/json"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

// ChainID is that of the default genesis.
const ChainID = 31337

// genesisGasLimit is Ethereum's own of late. Blocks keep the limit of their
// genesis.
const genesisGasLimit = 60_000_000

// genesisEther is what each of Accounts begins with.
const genesisEther = 10_000

// Genesis returns the genesis file of the default chain in go-ethereum's format:
// every fork up to Osaka from the first block on, Accounts with 10,000 ether
// each, and the contracts that the forks' system calls go to. It is always the
// same text.
func Genesis() []byte {
	spec := &core.Genesis{
		Config:     genesisConfig(),
		GasLimit:   genesisGasLimit,
		Difficulty: new(big.Int),
		BaseFee:    big.NewInt(params.InitialBaseFee),
		Alloc:      core.SystemContractAllocs(),
	}
	balance := new(big.Int).Mul(big.NewInt(genesisEther), big.NewInt(params.Ether))
	for _, a := range Accounts() {
		spec.Alloc[a.Address] = types.Account{Balance: balance}
	}
	text, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("encode genesis: %v", err)) // it is made above
	}
	return append(text, '\n')
}

func genesisConfig() *params.ChainConfig {
	c := &params.ChainConfig{
		ChainID:                 big.NewInt(ChainID),
		TerminalTotalDifficulty: new(big.Int),
		BlobScheduleConfig:      params.DefaultBlobSchedule,
	}
	for _, fork := range []**big.Int{
		&c.HomesteadBlock, &c.EIP150Block, &c.EIP155Block, &c.EIP158Block, &c.ByzantiumBlock, &c.ConstantinopleBlock,
		&c.PetersburgBlock, &c.IstanbulBlock, &c.MuirGlacierBlock, &c.BerlinBlock, &c.LondonBlock,
		&c.ArrowGlacierBlock, &c.GrayGlacierBlock, &c.MergeNetsplitBlock,
	} {
		*fork = new(big.Int)
	}
	for _, fork := range []**uint64{&c.ShanghaiTime, &c.CancunTime, &c.PragueTime, &c.OsakaTime} {
		*fork = new(uint64)
	}
	return c
}
