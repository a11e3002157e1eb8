// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/bench/workload"
)

// startAnvil starts an anvil with the state of an old block as its genesis, and
// has it execute the blocks above: it computes the root of all state for every
// block, and keeps every state whole, so that no long chain fits.
func (c *config) startAnvil(ctx context.Context, chain *workload.Chain) (*peer, error) {
	base := chain.Head() - uint64(c.anvilBlocks)
	genesis, blocks, err := anvilGenesis(chain, base)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(chain.Dir)
	file := filepath.Join(dir, "anvil-genesis.json")
	if err := os.WriteFile(file, genesis, 0o600); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	server, err := start(ctx, command{
		name: anvilName, program: c.anvil, logs: dir, cores: c.serverCores(),
		// It would say where it listens, and with that every request.
		args: []string{"--quiet", "--port", strconv.Itoa(port), "--init", file, "--number", strconv.FormatUint(base, 10),
			"--hardfork", "osaka", "--no-mining", "--order", "fifo", "--accounts", "0"},
	})
	if err != nil {
		return nil, err
	}
	p := &peer{name: anvilName, addr: "127.0.0.1:" + strconv.Itoa(port), server: server, oldest: base + 1}
	if err = awaitAnswer(ctx, p.addr); err == nil {
		err = executeBlocks(ctx, p.addr, blocks)
	}
	if err != nil {
		p.stop()
		return nil, fmt.Errorf("anvil: %w", err)
	}
	return p, nil
}

// freePort returns a port that nobody has at the moment, for a server that cannot
// be asked which one it took.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func awaitAnswer(ctx context.Context, addr string) (err error) {
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); {
		if _, err = call[string](ctx, addr, "eth_blockNumber"); err == nil {
			return nil
		}
		if err := wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return err
}

// anvilGenesis returns a genesis file with the state of a block, and the blocks
// above it. Balances are those of the real genesis, more than the senders have.
func anvilGenesis(chain *workload.Chain, base uint64) (genesis []byte, above []*types.Block, err error) {
	text, err := os.ReadFile(workload.Genesis(chain.Dir))
	if err != nil {
		return nil, nil, err
	}
	spec := new(core.Genesis)
	if err := json.Unmarshal(text, spec); err != nil {
		return nil, nil, fmt.Errorf("genesis: %w", err)
	}
	chain.Slots(func(addr common.Address, slot common.Hash, h workload.History) {
		value := h.At(base)
		if value == (common.Hash{}) {
			return
		}
		account := spec.Alloc[addr]
		if account.Storage == nil {
			account.Storage = make(map[common.Hash]common.Hash)
		}
		account.Storage[slot] = value
		spec.Alloc[addr] = account
	})
	err = eachBlock(workload.Blocks(chain.Dir), func(b *types.Block) error {
		if b.NumberU64() > base {
			above = append(above, b)
			return nil
		}
		spec.Timestamp = b.Time()
		return countNonces(spec.Alloc, b)
	})
	if err != nil {
		return nil, nil, err
	}
	spec.Number, spec.BaseFee = base, above[0].BaseFee()
	genesis, err = json.Marshal(spec)
	return genesis, above, err
}

func countNonces(alloc types.GenesisAlloc, b *types.Block) error {
	for _, tx := range b.Transactions() {
		from, err := types.Sender(types.LatestSignerForChainID(tx.ChainId()), tx)
		if err != nil {
			return fmt.Errorf("block %d: %w", b.NumberU64(), err)
		}
		account := alloc[from]
		account.Nonce = tx.Nonce() + 1
		alloc[from] = account
	}
	return nil
}

// eachBlock reads the blocks of a file.
func eachBlock(path string, f func(*types.Block) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	for s := rlp.NewStream(file, 0); ; {
		b := new(types.Block)
		if err := s.Decode(b); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := f(b); err != nil {
			return err
		}
	}
}

// executeBlocks has anvil make the same blocks.
func executeBlocks(ctx context.Context, addr string, blocks []*types.Block) error {
	for _, b := range blocks {
		for _, tx := range b.Transactions() {
			raw, err := tx.MarshalBinary()
			if err != nil {
				return fmt.Errorf("encode transaction: %w", err)
			}
			if _, err := call[common.Hash](ctx, addr, "eth_sendRawTransaction", hexutil.Bytes(raw)); err != nil {
				return err
			}
		}
		for _, step := range []struct {
			method string
			param  any
		}{
			{"anvil_setCoinbase", b.Coinbase()},
			{"anvil_setNextBlockBaseFeePerGas", (*hexutil.Big)(new(big.Int).Set(b.BaseFee()))},
			{"evm_setNextBlockTimestamp", hexutil.Uint64(b.Time())},
		} {
			if _, err := call[json.RawMessage](ctx, addr, step.method, step.param); err != nil {
				return err
			}
		}
		if _, err := call[json.RawMessage](ctx, addr, "evm_mine"); err != nil {
			return err
		}
		type made struct {
			Number       hexutil.Uint64
			GasUsed      hexutil.Uint64
			Transactions []common.Hash
		}
		got, err := call[made](ctx, addr, "eth_getBlockByNumber", "latest", false)
		if err != nil {
			return err
		}
		if uint64(got.Number) != b.NumberU64() || len(got.Transactions) != len(b.Transactions()) || uint64(got.GasUsed) != b.GasUsed() {
			return fmt.Errorf("block %d of %d transactions and %d gas became block %d of %d and %d",
				b.NumberU64(), len(b.Transactions()), b.GasUsed(), got.Number, len(got.Transactions), got.GasUsed)
		}
	}
	return nil
}
