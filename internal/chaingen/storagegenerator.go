// SPDX-License-Identifier: Apache-2.0

package chaingen

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"math/rand/v2"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// A storageGenerator fills the blocks of a chain that stores.
type storageGenerator struct {
	o       StorageOptions
	random  *rand.Rand
	popular *rand.Zipf // which contract a rewrite is of
	keys    []key

	// order has a contract for each call that adds slots to it, and next is the
	// first that has not been made.
	order []int
	next  int

	goal    []int // slots of each contract in the end
	present []int // slots of each contract so far
	turn    int   // contract whose turn it is, where rewrites go round
	turns   []int // slot of each contract

	b       *core.BlockGen
	written [][]Write // by each block of the segment
}

// popularity is the exponent of the Zipf distributions that rewrites follow.
const popularity = 1.1

func newStorageGenerator(seed uint64, o StorageOptions) *storageGenerator {
	g := &storageGenerator{
		o: o, random: rand.New(rand.NewPCG(seed, 1)), keys: newKeys(seed)[:senders],
		goal: shares(o.Slots, o.Contracts), present: make([]int, o.Contracts), turns: make([]int, o.Contracts),
	}
	g.popular = rand.NewZipf(g.random, popularity, 1, uint64(o.Contracts-1))
	for n, slots := range g.goal {
		for range (slots + slotsPerCall - 1) / slotsPerCall {
			g.order = append(g.order, n)
		}
	}
	g.random.Shuffle(len(g.order), func(i, j int) { g.order[i], g.order[j] = g.order[j], g.order[i] })
	return g
}

// shares divides total so that the nth gets about an nth of what the first gets,
// and each at least 1.
func shares(total, n int) []int {
	sum := 0.0
	for i := range n {
		sum += 1 / float64(i+1)
	}
	parts, left := make([]int, n), total-n
	for i := range parts {
		parts[i] = 1 + int(float64(total-n)/(sum*float64(i+1)))
		left -= parts[i] - 1
	}
	for i := 0; left > 0; i, left = i+1, left-1 {
		parts[i%n]++
	}
	return parts
}

func (g *storageGenerator) block(_ int, b *core.BlockGen) {
	g.b, g.written = b, append(g.written, nil)
	b.SetCoinbase(common.Address{0xcb})
	b.SetParentBeaconRoot(crypto.Keccak256Hash(b.Number().Bytes()))
	due := int(b.Number().Int64()) * len(g.order) / g.o.Blocks
	if g.o.Even {
		due = len(g.order)
	}
	for ; g.next < due; g.next++ {
		g.add(g.order[g.next])
	}
	for left := g.o.Rewrites; left > 0; left -= slotsPerCall {
		g.rewrite(min(left, slotsPerCall))
	}
}

// add makes a call that sets the next slots of a contract.
func (g *storageGenerator) add(contract int) {
	var writes []Write
	for range min(slotsPerCall, g.goal[contract]-g.present[contract]) {
		writes = append(writes, g.write(contract, g.present[contract]))
		g.present[contract]++
	}
	g.call(contract, writes)
}

// rewrite makes a call that sets slots of one contract again, if it has any.
func (g *storageGenerator) rewrite(count int) {
	contract := g.turn
	if g.o.Even {
		g.turn = (g.turn + 1) % g.o.Contracts
	} else {
		contract = int(g.popular.Uint64())
	}
	if g.present[contract] == 0 {
		return
	}
	next := func() int {
		g.turns[contract] = (g.turns[contract] + 1) % g.present[contract]
		return g.turns[contract]
	}
	if !g.o.Even {
		hot := rand.NewZipf(g.random, popularity, 1, uint64(g.present[contract]-1))
		next = func() int { return int(hot.Uint64()) }
	}
	var writes []Write
	for range count {
		writes = append(writes, g.write(contract, next()))
	}
	g.call(contract, writes)
}

func (g *storageGenerator) write(contract, slot int) Write {
	w := Write{Block: g.b.Number().Uint64(), Contract: contract, Slot: slotKey(contract, slot)}
	for i := 0; i < len(w.Value); i += 8 {
		binary.BigEndian.PutUint64(w.Value[i:], g.random.Uint64()|1) // never zero
	}
	return w
}

// slotKey is as compilers have it: a few slots by their number, all others by a
// hash.
func slotKey(contract, slot int) common.Hash {
	if slot < 4 {
		return common.BigToHash(big.NewInt(int64(slot)))
	}
	key := binary.BigEndian.AppendUint32([]byte("slot"), uint32(contract))
	return crypto.Keccak256Hash(binary.BigEndian.AppendUint32(key, uint32(slot)))
}

func (g *storageGenerator) call(contract int, writes []Write) {
	from, to := g.keys[g.random.IntN(len(g.keys))], StorageContract(contract)
	tx, err := types.SignNewTx(from.secret, g.b.Signer(), &types.DynamicFeeTx{
		ChainID: new(big.Int).SetUint64(chainID), Nonce: g.b.TxNonce(from.addr), To: &to,
		GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(100 * params.GWei),
		Gas: CallGas(len(writes)), Data: CallData(writes),
	})
	if err != nil {
		panic(fmt.Sprintf("sign: %v", err)) // the kind fits the fork
	}
	g.b.AddTx(tx)
	last := len(g.written) - 1
	g.written[last] = append(g.written[last], writes...)
}
