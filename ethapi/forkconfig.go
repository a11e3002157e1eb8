// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"math"
	"math/big"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/forkid"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"

	"glimpse/chain"
)

// forkJSON is a fork as EIP-7910 describes it.
type forkJSON struct {
	ActivationTime  uint64                   `json:"activationTime"`
	BlobSchedule    *params.BlobConfig       `json:"blobSchedule"`
	ChainID         *hexutil.Big             `json:"chainId"`
	ForkID          hexutil.Bytes            `json:"forkId"`
	Precompiles     map[string]chain.Address `json:"precompiles"`
	SystemContracts map[string]chain.Address `json:"systemContracts"`
}

func forkConfig(s *session, dst []byte, args *arguments) ([]byte, error) {
	if err := args.done(); err != nil {
		return nil, err
	}
	genesis, err := s.sealed(0)
	if err != nil {
		return nil, err
	}
	latest, err := s.sealed(s.Latest().Number)
	if err != nil {
		return nil, err
	}
	config := s.api.config.Chain
	current, last := config.LatestFork(latest.header.Time), config.LatestFork(math.MaxUint64)
	// Forks may be left out of a schedule, so the next is not simply one more.
	var next *uint64
	for f := current + 1; f <= last && next == nil; f++ {
		next = config.Timestamp(f)
	}
	var out struct {
		Current *forkJSON `json:"current"`
		Next    *forkJSON `json:"next"`
		Last    *forkJSON `json:"last"`
	}
	out.Current = s.api.fork(genesis, config.Timestamp(current))
	if next != nil {
		out.Next = s.api.fork(genesis, next)
		out.Last = s.api.fork(genesis, config.Timestamp(last))
	}
	return appendJSON(dst, out)
}

// fork describes the fork that begins at a time, nil where it has none.
func (a *API) fork(genesis *block, begins *uint64) *forkJSON {
	if begins == nil {
		return nil
	}
	c, at := a.config.Chain, *begins
	header := &types.Header{Number: c.LondonBlock, Time: at, Difficulty: new(big.Int)}
	id := forkid.NewID(c, types.NewBlockWithHeader(genesis.header), math.MaxUint64, at).Hash
	f := &forkJSON{
		BlobSchedule:    c.BlobConfig(c.LatestFork(at)),
		ChainID:         (*hexutil.Big)(c.ChainID),
		ForkID:          id[:],
		Precompiles:     a.config.EVM.Precompiles(header),
		SystemContracts: c.ActiveSystemContracts(at),
	}
	if at > genesis.header.Time {
		f.ActivationTime = at // what is active from the beginning has 0
	}
	return f
}
