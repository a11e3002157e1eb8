// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/params"
)

// A fork is what eth_config tells about one (EIP-7910). It has no name: which one
// it is follows from what it brought.
type fork struct {
	ActivationTime uint64
	BlobSchedule   *params.BlobConfig
	ChainID        *hexutil.Big
	Precompiles    map[string]common.Address
}

// ScheduleOf returns the rules of a chain from the answer of its node to
// eth_config. They hold from the fork that is current there on, which is all that
// a node needs that begins to follow now. A fork that comes later and that is more
// than another number of blobs ends what is known: blocks after it are refused.
func ScheduleOf(answer []byte) (*params.ChainConfig, error) {
	var schedule struct{ Current, Next *fork }
	if err := json.Unmarshal(answer, &schedule); err != nil {
		return nil, fmt.Errorf("eth_config: %w", err)
	}
	current, next := schedule.Current, schedule.Next
	if current == nil || current.ChainID == nil {
		return nil, errors.New("eth_config: no current fork with a chain id")
	}
	config, err := current.config()
	if err != nil {
		return nil, fmt.Errorf("eth_config: %w", err)
	}
	if next == nil {
		return config, nil
	}
	if maps.Equal(next.Precompiles, current.Precompiles) && next.BlobSchedule != nil && config.OsakaTime != nil {
		config.BPO1Time, config.BlobScheduleConfig.BPO1 = &next.ActivationTime, next.BlobSchedule
	} else {
		// The first fork whose rules are not complete here stands for any.
		config.AmsterdamTime, config.BogotaTime = &next.ActivationTime, &next.ActivationTime
	}
	return config, nil
}

// paris returns the rules of a chain that has all forks without a time from its
// beginning, and the usual numbers of blobs.
func paris() *params.ChainConfig {
	return &params.ChainConfig{
		HomesteadBlock: new(big.Int), EIP150Block: new(big.Int), EIP155Block: new(big.Int), EIP158Block: new(big.Int),
		ByzantiumBlock: new(big.Int), ConstantinopleBlock: new(big.Int), PetersburgBlock: new(big.Int), IstanbulBlock: new(big.Int),
		MuirGlacierBlock: new(big.Int), BerlinBlock: new(big.Int), LondonBlock: new(big.Int),
		ArrowGlacierBlock: new(big.Int), GrayGlacierBlock: new(big.Int), MergeNetsplitBlock: new(big.Int),
		TerminalTotalDifficulty: new(big.Int),
		BlobScheduleConfig:      &params.BlobScheduleConfig{Cancun: params.DefaultCancunBlobConfig, Prague: params.DefaultPragueBlobConfig},
	}
}

// config returns the rules of the fork, as if they had held from the beginning.
func (f *fork) config() (*params.ChainConfig, error) {
	c := paris()
	c.ChainID, c.ShanghaiTime, c.CancunTime = f.ChainID.ToInt(), new(uint64), new(uint64)
	c.BlobScheduleConfig = &params.BlobScheduleConfig{Cancun: f.BlobSchedule, Prague: f.BlobSchedule}
	switch {
	case f.has("P256VERIFY"):
		c.PragueTime, c.OsakaTime = new(uint64), new(uint64)
	case f.has("BLS12_G1ADD"):
		c.PragueTime = new(uint64)
	case !f.has("KZG_POINT_EVALUATION"):
		return nil, errors.New("the current fork is older than Cancun, which eth_config cannot describe")
	}
	if f.BlobSchedule == nil {
		return nil, errors.New("no blob schedule")
	}
	return c, nil
}

func (f *fork) has(precompile string) bool {
	_, ok := f.Precompiles[precompile]
	return ok
}
