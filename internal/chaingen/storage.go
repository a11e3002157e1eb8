// SPDX-License-Identifier: Apache-2.0

package chaingen

import (
	"crypto/ecdsa"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/triedb"
)

// StorageOptions shape a chain that does nothing but store. All are required
// but Rewrites, Even and Large.
type StorageOptions struct {
	Contracts int // there from genesis on
	Slots     int // of all contracts: the first has most, the nth an nth of that
	Blocks    int

	// Rewrites is how many slots of those that are there a block sets again, the
	// first slots of the first contracts far more often than others.
	Rewrites int

	// Even has the first block set all slots, and rewrites go round all contracts
	// and all their slots.
	Even bool

	// Large is how many contracts have code of LargeCode bytes, no two the same.
	Large int
}

// LargeCode is the size of the largest code that a chain accepts.
const LargeCode = params.MaxCodeSize

// A Write is a slot that a block sets. No value is zero.
type Write struct {
	Block    uint64
	Contract int // see StorageContract
	Slot     common.Hash
	Value    common.Hash
}

// StorageContract is where the nth contract of a chain of GenerateStorage is,
// from 0 on.
func StorageContract(n int) common.Address {
	return common.BytesToAddress(crypto.Keccak256(binary.BigEndian.AppendUint32([]byte("contract"), uint32(n))))
}

// FreeKeys are accounts with a balance in the genesis of a seed that send nothing
// in the chain, so that the one who takes them knows their nonce.
func FreeKeys(seed uint64) (keys []*ecdsa.PrivateKey) {
	for _, k := range newKeys(seed)[senders:] {
		keys = append(keys, k.secret)
	}
	return keys
}

// CallData makes a contract of GenerateStorage set slots.
func CallData(writes []Write) (data []byte) {
	for _, w := range writes {
		data = append(append(data, w.Slot[:]...), w.Value[:]...)
	}
	return data
}

// CallGas is enough gas to set so many slots.
func CallGas(slots int) uint64 { return 60_000 + 30_000*uint64(slots) }

// storageTime is in the future: geth takes a head of long ago for one that is
// being synced, and does not index its history for five minutes.
const storageTime = 4_000_000_000

const (
	storageGasLimit = 60_000_000
	slotsPerCall    = 8
	segment         = 256 // blocks; a chain need not fit into memory
)

// GenerateStorage gives emit one block after the other from 1 on, with what it
// writes in order, and returns the genesis file. Every slot is written for the
// first time by some block. The rules are those of Newest. An error of emit ends
// it and is returned.
func GenerateStorage(seed uint64, o StorageOptions, emit func(*types.Block, []Write) error) (genesis []byte, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	spec := o.genesis(seed)
	if genesis, err = json.Marshal(spec); err != nil {
		return nil, fmt.Errorf("encode genesis: %w", err)
	}
	db := rawdb.NewMemoryDatabase()
	tries := triedb.NewDatabase(db, triedb.HashDefaults)
	parent, err := spec.Commit(db, tries, nil)
	if err != nil {
		return nil, fmt.Errorf("genesis state: %w", err)
	}
	if err := tries.Close(); err != nil {
		return nil, fmt.Errorf("genesis state: %w", err)
	}
	g := newStorageGenerator(seed, o)
	engine := beacon.New(ethash.NewFaker())
	for done := 0; done < o.Blocks; {
		g.written = g.written[:0]
		blocks, _ := core.GenerateChain(spec.Config, parent, engine, db, min(segment, o.Blocks-done), g.block)
		for i, b := range blocks {
			if err := emit(b, g.written[i]); err != nil {
				return nil, err
			}
		}
		done += len(blocks)
		parent = blocks[len(blocks)-1]
	}
	return genesis, nil
}

func (o StorageOptions) check() error {
	if o.Contracts < 1 || o.Slots < o.Contracts || o.Blocks < 1 || o.Rewrites < 0 || o.Large < 0 || o.Large > o.Contracts {
		return fmt.Errorf("no chain has %d contracts, %d of them large, with %d slots in %d blocks that rewrite %d", o.Contracts, o.Large, o.Slots, o.Blocks, o.Rewrites)
	}
	// New slots come in calls of up to slotsPerCall, and a block may get one call
	// more than the mean.
	blocks := o.Blocks
	if o.Even {
		blocks = 1
	}
	if most := uint64(o.Slots/blocks + o.Contracts/blocks + 2*slotsPerCall + o.Rewrites); CallGas(1)*most > storageGasLimit {
		return errors.New("so many slots do not fit into so few blocks")
	}
	return nil
}

func (o StorageOptions) genesis(seed uint64) *core.Genesis {
	spec := &core.Genesis{
		Config: Newest.config(o.Blocks), Timestamp: storageTime, GasLimit: storageGasLimit, Difficulty: new(big.Int),
		Alloc: core.SystemContractAllocs(),
	}
	small := Assemble(store + `STOP`)
	for n := range o.Contracts {
		code := small
		if n < o.Large {
			code = padded(small, rand.New(rand.NewPCG(seed, uint64(n))))
		}
		spec.Alloc[StorageContract(n)] = types.Account{Code: code, Balance: new(big.Int)}
	}
	for _, key := range newKeys(seed) {
		spec.Alloc[key.addr] = types.Account{Balance: new(big.Int).Lsh(big.NewInt(1), 100)}
	}
	return spec
}

// padded is code of the largest size that does the same.
func padded(code []byte, random *rand.Rand) []byte {
	code = append([]byte(nil), code...)
	for len(code) < LargeCode {
		code = append(code, byte(random.Uint32()))
	}
	return code
}
