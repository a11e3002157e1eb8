// SPDX-License-Identifier: Apache-2.0

package chaingen

import (
	"crypto/ecdsa"
	"encoding/binary"
	"fmt"
	"math/big"
	"math/rand/v2"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

type key struct {
	secret *ecdsa.PrivateKey
	addr   common.Address
}

// The first keys send transactions; the others only sign delegations, so that
// the nonces of both are easy to know.
const (
	senders    = 6
	delegators = 4
)

func newKeys(seed uint64) (keys []key) {
	for i := range senders + delegators {
		var entropy [16]byte
		binary.BigEndian.PutUint64(entropy[:], seed)
		binary.BigEndian.PutUint64(entropy[8:], uint64(i))
		secret, err := crypto.ToECDSA(crypto.Keccak256(entropy[:]))
		if err != nil {
			panic(fmt.Sprintf("key %d of seed %d: %v", i, seed, err)) // one in 2^128
		}
		keys = append(keys, key{secret, crypto.PubkeyToAddress(secret.PublicKey)})
	}
	return keys
}

// A generator fills one block after the other.
type generator struct {
	random  *rand.Rand
	config  *params.ChainConfig
	actions int
	keys    []key

	// Of the block that is being filled.
	b     *core.BlockGen
	rules params.Rules
	blobs int

	deployed []common.Address // storers of all blocks so far
}

func (g *generator) block(i int, b *core.BlockGen) {
	g.b, g.blobs = b, 0
	g.rules = g.config.Rules(b.Number(), b.Difficulty().Sign() == 0, b.Timestamp())
	b.SetCoinbase(common.Address{0xcb, byte(g.random.IntN(3))})
	if g.rules.IsCancun {
		b.SetParentBeaconRoot(crypto.Keccak256Hash(b.Number().Bytes()))
	}
	if g.config.TerminalTotalDifficulty == nil && i > 6 && g.random.IntN(4) == 0 {
		g.uncle(i)
	}
	for range g.random.IntN(2*g.actions + 1) {
		g.act()
	}
	if g.rules.IsShanghai && g.random.IntN(3) == 0 {
		for range 1 + g.random.IntN(3) {
			b.AddWithdrawal(&types.Withdrawal{Validator: 5, Address: g.anyAddress(), Amount: uint64(g.random.IntN(100))})
		}
	}
}

// uncle adds a sibling of the block two before the parent, which like all blocks
// around the DAO fork must say that it supports it.
func (g *generator) uncle(i int) {
	uncle := &types.Header{ParentHash: g.b.PrevBlock(i - 4).Hash(), Number: big.NewInt(int64(i - 2)), Coinbase: common.Address{0xcc}}
	since := new(big.Int).Sub(uncle.Number, g.config.DAOForkBlock)
	if since.Sign() >= 0 && since.Cmp(params.DAOForkExtraRange) < 0 {
		uncle.Extra = params.DAOForkBlockExtra
	}
	g.b.AddUncle(uncle)
}

// A sending is what an action wants of a transaction; which kind it is and who
// sends it is left to chance.
type sending struct {
	to    *common.Address // nil creates a contract
	data  []byte
	value int64
}

func (g *generator) call(to common.Address, data []byte) {
	g.send(sending{to: &to, data: data})
}

// gasLimit is enough for everything here, also at Amsterdam's prices for new
// state, and lets a block hold a few dozen transactions.
const gasLimit = 800_000

// send returns where a contract is created, if s creates one. ok is false where
// the block is full.
func (g *generator) send(s sending) (created common.Address, ok bool) {
	if g.b.Gas() < 2*gasLimit {
		return created, false
	}
	from := g.keys[g.random.IntN(senders)]
	created = crypto.CreateAddress(from.addr, g.b.TxNonce(from.addr))
	tx, err := types.SignNewTx(from.secret, g.b.Signer(), g.txData(from.addr, s))
	if err != nil {
		panic(fmt.Sprintf("sign: %v", err)) // the kinds fit the fork
	}
	g.b.AddTx(tx)
	return created, true
}

// txData picks one of the kinds of transaction that the fork knows.
func (g *generator) txData(from common.Address, s sending) types.TxData {
	nonce, value, price := g.b.TxNonce(from), big.NewInt(s.value), big.NewInt(100*params.GWei)
	kinds := 1
	switch {
	case g.rules.IsLondon:
		kinds = 3
	case g.rules.IsBerlin:
		kinds = 2
	}
	if g.rules.IsCancun && s.to != nil && g.blobs < 4 && g.random.IntN(8) == 0 {
		g.blobs++
		return &types.BlobTx{
			ChainID: uint256.MustFromBig(g.config.ChainID), Nonce: nonce, To: *s.to, Value: uint256.NewInt(uint64(s.value)), Data: s.data,
			Gas: gasLimit, GasFeeCap: uint256.MustFromBig(price), GasTipCap: uint256.NewInt(params.GWei),
			BlobFeeCap: uint256.MustFromBig(price), BlobHashes: []common.Hash{{0: 1, 31: byte(g.blobs)}},
		}
	}
	switch g.random.IntN(kinds) {
	case 1:
		return &types.AccessListTx{
			ChainID: g.config.ChainID, Nonce: nonce, GasPrice: price, Gas: gasLimit, To: s.to, Value: value, Data: s.data,
			AccessList: types.AccessList{{Address: storerAddr, StorageKeys: []common.Hash{{31: 1}}}},
		}
	case 2:
		return &types.DynamicFeeTx{
			ChainID: g.config.ChainID, Nonce: nonce, GasFeeCap: price, GasTipCap: big.NewInt(params.GWei), Gas: gasLimit, To: s.to, Value: value, Data: s.data,
		}
	}
	return &types.LegacyTx{Nonce: nonce, GasPrice: price, Gas: gasLimit, To: s.to, Value: value, Data: s.data}
}

// delegate lets an account use the code at target, or its own none for zero.
func (g *generator) delegate(authority key, target common.Address) {
	if g.b.Gas() < 2*gasLimit {
		return
	}
	chainID := uint256.MustFromBig(g.config.ChainID)
	auth, err := types.SignSetCode(authority.secret, types.SetCodeAuthorization{
		ChainID: *chainID, Address: target, Nonce: g.b.TxNonce(authority.addr),
	})
	if err != nil {
		panic(fmt.Sprintf("sign delegation: %v", err))
	}
	from := g.keys[g.random.IntN(senders)]
	tx, err := types.SignNewTx(from.secret, g.b.Signer(), &types.SetCodeTx{
		ChainID: chainID, Nonce: g.b.TxNonce(from.addr), To: authority.addr, Data: g.pairs(1), Gas: gasLimit,
		GasFeeCap: uint256.NewInt(100 * params.GWei), GasTipCap: uint256.NewInt(params.GWei),
		AuthList: []types.SetCodeAuthorization{auth},
	})
	if err != nil {
		panic(fmt.Sprintf("sign: %v", err))
	}
	g.b.AddTx(tx)
}
