// SPDX-License-Identifier: Apache-2.0

package chaingen

import (
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
)

// Empty returns blocks without transactions on top of a genesis file.
func Empty(genesis []byte, blocks int) ([]*types.Block, error) {
	spec := new(core.Genesis)
	if err := json.Unmarshal(genesis, spec); err != nil {
		return nil, fmt.Errorf("genesis: %w", err)
	}
	_, chain, _ := core.GenerateChainWithGenesis(spec, beacon.New(ethash.NewFaker()), blocks, func(_ int, b *core.BlockGen) {
		if spec.Config.IsCancun(b.Number(), b.Timestamp()) {
			b.SetParentBeaconRoot(common.Hash{})
		}
	})
	return chain, nil
}
