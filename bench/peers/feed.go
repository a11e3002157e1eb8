// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"flag"
	"fmt"
	"math/big"
	"math/rand/v2"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"

	"glimpse/bench/workload"
	"glimpse/internal/chaingen"
)

// feedCommand runs the sender of transactions, a process of its own so that
// signing does not take from the one that measures.
const feedCommand = "feed"

const (
	feedInterval = 200 * time.Millisecond // as flashblocks
	feedSlots    = 8                      // that a transaction sets
)

// feedTransactions sends transactions that set slots of the chain, some for each
// flashblock, until ctx ends.
func feedTransactions(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet(feedCommand, flag.ContinueOnError)
	dir := flags.String("chain", "", "directory of the chain")
	addr := flags.String("addr", "", "host and port to send to")
	size := flags.Int("size", 0, "transactions at once")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chain, err := workload.Open(*dir)
	if err != nil {
		return err
	}
	id, err := call[hexutil.Uint64](ctx, *addr, "eth_chainId")
	if err != nil {
		return err
	}
	f := &feed{
		addr: *addr, chain: chain, chainID: new(big.Int).SetUint64(uint64(id)),
		random: rand.New(rand.NewPCG(chain.Seed, 4)), keys: chaingen.FreeKeys(chain.Seed),
	}
	ticks := time.NewTicker(feedInterval)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
		if err := f.send(ctx, *size); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// A feed makes transactions.
type feed struct {
	addr    string
	chain   *workload.Chain
	chainID *big.Int
	random  *rand.Rand
	keys    []*ecdsa.PrivateKey
	next    int // key
}

// send sends some transactions of one account, whose nonce is asked for because
// a server that was paused may have dropped what it had.
func (f *feed) send(ctx context.Context, size int) error {
	if size == 0 {
		return nil
	}
	key := f.keys[f.next%len(f.keys)]
	f.next++
	nonce, err := call[hexutil.Uint64](ctx, f.addr, "eth_getTransactionCount", crypto.PubkeyToAddress(key.PublicKey), "pending")
	if err != nil {
		return err
	}
	type sending struct {
		Version string `json:"jsonrpc"`
		ID      int    `json:"id"`
		Method  string `json:"method"`
		Params  []any  `json:"params"`
	}
	var batch []sending
	for i := range size {
		raw, err := f.sign(key, uint64(nonce)+uint64(i))
		if err != nil {
			return err
		}
		batch = append(batch, sending{"2.0", i, "eth_sendRawTransaction", []any{hexutil.Bytes(raw)}})
	}
	body, err := json.Marshal(batch)
	if err != nil {
		return fmt.Errorf("encode transactions: %w", err)
	}
	// One that is refused shows in what is pending, which is looked at before each
	// measurement.
	_, err = post(ctx, f.addr, body)
	return err
}

func (f *feed) sign(key *ecdsa.PrivateKey, nonce uint64) ([]byte, error) {
	n, slots := f.chain.Draw(f.random, feedSlots)
	writes := make([]chaingen.Write, len(slots))
	for i, slot := range slots {
		writes[i] = chaingen.Write{Slot: slot, Value: common.BigToHash(new(big.Int).SetUint64(f.random.Uint64() | 1))}
	}
	to := chaingen.StorageContract(n)
	tx, err := types.SignNewTx(key, types.LatestSignerForChainID(f.chainID), &types.DynamicFeeTx{
		ChainID: f.chainID, Nonce: nonce, To: &to, Gas: chaingen.CallGas(len(writes)), Data: chaingen.CallData(writes),
		GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(100 * params.GWei),
	})
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	raw, err := tx.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("encode transaction: %w", err)
	}
	return raw, nil
}
