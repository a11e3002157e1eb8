// SPDX-License-Identifier: Apache-2.0

package opstack_test

import (
	"bytes"
	"crypto/ecdsa"
	"encoding/binary"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"

	"glimpse/chain"
	"glimpse/evm/opstack"
	"glimpse/internal/chaingen"
)

const (
	chainID     = 901
	genesisTime = 1_700_000_000
	blockTime   = 2
	gasLimit    = 100_000_000
)

// forkBlocks are the blocks that bring each fork of the test chain.
var forkBlocks = map[string]uint64{
	"canyon": 4, "ecotone": 8, "fjord": 12, "granite": 16, "holocene": 20, "isthmus": 24, "jovian": 30,
}

const chainLength = 48

func timeOf(block uint64) uint64 { return genesisTime + blockTime*block }

// reached reports whether a block is at or after a fork, and whether it is the
// one that brings it.
func reached(fork string, block uint64) (at, first bool) {
	return block >= forkBlocks[fork], block == forkBlocks[fork]
}

func testConfig(t testing.TB) opstack.Config {
	t.Helper()
	times := make(map[string]uint64)
	for name, block := range forkBlocks {
		times[name] = timeOf(block)
	}
	forks, err := opstack.ParseForks(times)
	if err != nil {
		t.Fatal(err)
	}
	return opstack.Config{ChainID: chainID, Forks: forks, Elasticity: 6, Denominator: 50, DenominatorCanyon: 250}
}

func newRules(t testing.TB, config opstack.Config) *opstack.Rules {
	t.Helper()
	rules, err := opstack.NewRules(config)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func address(n byte) chain.Address { return chain.Address{0: 0xc0, 19: n} }

var (
	depositor       = chain.Address{0xde, 0xad, 0xde, 0xad, 0xde, 0xad, 0xde, 0xad, 0xde, 0xad, 0xde, 0xad, 0xde, 0xad, 0xde, 0xad, 0xde, 0xad, 0x00, 0x01}
	l1Block         = chain.Address{0: 0x42, 19: 0x15}
	sequencerVault  = chain.Address{0: 0x42, 19: 0x11}
	storer          = address(1)
	reverter        = address(2)
	environment     = address(3)
	precompileProbe = address(4)
	mortal          = address(5)
	newEnvironment  = address(6)
)

const storePairs = `
	        0
	next:   CALLDATASIZE DUP2 LT ISZERO @done JUMPI
	        DUP1 32 ADD CALLDATALOAD
	        DUP2 CALLDATALOAD
	        SSTORE
	        64 ADD @next JUMP
	done:
`

// contracts of the genesis block. The one of block attributes stores what they
// say where the real one does.
var contracts = map[chain.Address][]byte{
	l1Block: chaingen.Assemble(`
		200 CALLDATASIZE GT @bedrock JUMPI
		36 CALLDATALOAD 1 SSTORE
		68 CALLDATALOAD 7 SSTORE
		4 CALLDATALOAD 192 SHR 64 SHL 3 SSTORE
		164 CALLDATALOAD 160 SHR 8 SSTORE STOP
	bedrock:
		68 CALLDATALOAD 1 SSTORE
		196 CALLDATALOAD 5 SSTORE
		228 CALLDATALOAD 6 SSTORE STOP`),
	storer:   chaingen.Assemble(storePairs + `CALLDATASIZE 0 0 LOG1 STOP`),
	reverter: chaingen.Assemble(storePairs + `0 0 REVERT`),
	environment: chaingen.Assemble(`
		CALLER BALANCE 0 SSTORE  SELFBALANCE 1 SSTORE  GASPRICE 2 SSTORE  BASEFEE 3 SSTORE
		GAS 4 SSTORE  NUMBER 5 SSTORE  TIMESTAMP 6 SSTORE  COINBASE 7 SSTORE
		3 NUMBER SUB BLOCKHASH 8 SSTORE  CHAINID 9 SSTORE  ORIGIN 10 SSTORE
		COINBASE BALANCE 11 SSTORE  GASLIMIT 12 SSTORE  1 NUMBER SUB BLOCKHASH 13 SSTORE STOP`),
	newEnvironment: chaingen.Assemble(`BLOBBASEFEE 0 SSTORE  NUMBER 1 SSTORE STOP`),
	mortal:         chaingen.Assemble(`CALLDATASIZE ISZERO @die JUMPI` + storePairs + `STOP die: CALLER SELFDESTRUCT`),
	// The probe calls the precompile in the first word with as many zeros as the
	// second says and notes how it went from the slot in the third.
	precompileProbe: chaingen.Assemble(`
		32 0 32 CALLDATALOAD 0 0 0 CALLDATALOAD GAS CALL
		64 CALLDATALOAD SSTORE
		GAS 64 CALLDATALOAD 1 ADD SSTORE
		0 MLOAD 64 CALLDATALOAD 2 ADD SSTORE STOP`),
	params.BeaconRootsAddress:    params.BeaconRootsCode,
	params.HistoryStorageAddress: params.HistoryStorageCode,
}

// A user has a key and the nonce of its next transaction.
type user struct {
	key   *ecdsa.PrivateKey
	addr  chain.Address
	nonce uint64
}

func newUser(t testing.TB, n byte) *user {
	t.Helper()
	key, err := crypto.ToECDSA(bytes.Repeat([]byte{n}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return &user{key: key, addr: crypto.PubkeyToAddress(key.PublicKey)}
}

// genesisAlloc is the state of the first block.
func genesisAlloc(users []*user) types.GenesisAlloc {
	alloc := make(types.GenesisAlloc)
	for addr, code := range contracts {
		alloc[addr] = types.Account{Code: code, Balance: new(big.Int), Nonce: 1}
	}
	for _, u := range users {
		alloc[u.addr] = types.Account{Balance: new(big.Int).Exp(big.NewInt(10), big.NewInt(24), nil)}
	}
	return alloc
}

func allocDiff(alloc types.GenesisAlloc) *chain.Diff {
	diff := new(chain.Diff)
	codes := make(map[chain.Hash]bool)
	for addr, given := range alloc {
		account := chain.Account{Exists: true, Nonce: given.Nonce, Balance: *uint256.MustFromBig(given.Balance)}
		if len(given.Code) > 0 {
			code := chain.NewCode(given.Code)
			account.CodeHash = code.Hash
			if !codes[code.Hash] {
				codes[code.Hash] = true
				diff.Codes = append(diff.Codes, code)
			}
		}
		diff.Accounts = append(diff.Accounts, chain.AccountDiff{Address: addr, Changed: true, Account: account})
	}
	diff.Sort()
	return diff
}

// A world makes the transactions of a chain, the same for the same seed.
type world struct {
	t      testing.TB
	rand   *rand.Rand
	users  []*user
	idle   []*user // they sign nothing but authorizations
	nextTo byte
}

func newWorld(t testing.TB, seed uint64) *world {
	w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 5))}
	for n := range byte(6) {
		w.users = append(w.users, newUser(t, n+1))
		w.idle = append(w.idle, newUser(t, n+101))
	}
	return w
}

func (w *world) deposit(d *opstack.Deposit) *opstack.Transaction {
	w.t.Helper()
	if d.Value == nil {
		d.Value = new(uint256.Int)
	}
	if d.SourceHash == (chain.Hash{}) {
		binary.BigEndian.PutUint64(d.SourceHash[:], w.rand.Uint64())
	}
	for _, u := range w.users {
		if u.addr == d.From {
			u.nonce++
		}
	}
	tx, err := opstack.NewDeposit(d)
	if err != nil {
		w.t.Fatal(err)
	}
	return tx
}

// attributes is the first deposit of a block, in the form of the fork before
// where the block brings a new one.
func (w *world) attributes(block uint64) *opstack.Transaction {
	return w.deposit(&opstack.Deposit{From: depositor, To: &l1Block, Gas: 1_000_000, Data: w.attributesData(block)})
}

func (w *world) attributesData(block uint64) []byte {
	form := func(fork string) bool {
		at, first := reached(fork, block)
		return at && !first
	}
	baseFee := 1_000_000_000 + w.rand.Uint64N(1_000_000_000)
	if !form("ecotone") {
		data := make([]byte, 4+8*32)
		copy(data, "\x01\x5d\x8e\xb9")
		binary.BigEndian.PutUint64(data[4+2*32+24:], baseFee)
		binary.BigEndian.PutUint64(data[4+6*32+24:], 188)
		binary.BigEndian.PutUint64(data[4+7*32+24:], 684_000)
		return data
	}
	data := []byte("\x44\x0a\x5e\x20")
	data = binary.BigEndian.AppendUint32(data, 5227)
	data = binary.BigEndian.AppendUint32(data, 1_014_213)
	data = binary.BigEndian.AppendUint64(data, block)
	data = binary.BigEndian.AppendUint64(data, timeOf(block))
	data = binary.BigEndian.AppendUint64(data, block/6)
	data = append(data, make([]byte, 24)...)
	data = binary.BigEndian.AppendUint64(data, baseFee)
	data = append(data, make([]byte, 24)...)
	data = binary.BigEndian.AppendUint64(data, 1+w.rand.Uint64N(50_000_000))
	data = append(data, make([]byte, 64)...)
	if form("isthmus") {
		copy(data, "\x09\x89\x99\xbe")
		data = binary.BigEndian.AppendUint32(data, 1000+w.rand.Uint32N(5000))
		data = binary.BigEndian.AppendUint64(data, 7777)
	}
	if form("jovian") {
		copy(data, "\x3d\xb6\xbe\x2b")
		data = binary.BigEndian.AppendUint16(data, 400)
	}
	return data
}

// pairs is call data for contracts that store.
func (w *world) pairs(n int) []byte {
	data := make([]byte, 64*n)
	for i := range n {
		data[64*i+31] = byte(w.rand.Uint32N(12))
		binary.BigEndian.PutUint64(data[64*i+56:], w.rand.Uint64N(3)*w.rand.Uint64())
	}
	return data
}

func (w *world) user() *user { return w.users[w.rand.IntN(len(w.users))] }

// deposits returns some of every kind.
func (w *world) deposits() []*opstack.Transaction {
	from := w.user().addr
	stranger := chain.Address{0: 0xaa, 19: byte(w.rand.Uint32N(200))}
	huge := new(uint256.Int).Lsh(uint256.NewInt(1), 200)
	kinds := []*opstack.Deposit{
		{From: stranger, To: &stranger, Mint: uint256.NewInt(w.rand.Uint64()), Gas: 100_000},
		{From: from, To: &stranger, Mint: uint256.NewInt(5_000_000), Value: uint256.NewInt(4_000_000), Gas: 50_000},
		{From: stranger, To: &from, Mint: uint256.NewInt(7), Value: huge, Gas: 50_000}, // cannot pay
		{From: from, Gas: 1_000_000, Data: chaingen.Deployer("NUMBER 0 SSTORE", contracts[storer])},
		{From: stranger, Mint: uint256.NewInt(11), Gas: 1_000_000, Data: chaingen.Assemble("0 0 REVERT")},
		{From: from, To: &storer, Mint: uint256.NewInt(13), Gas: 20_000, Data: w.pairs(1)}, // less than it takes to begin
		{From: from, To: &reverter, Mint: uint256.NewInt(17), Gas: 200_000, Data: w.pairs(2)},
		{From: storer, To: &environment, Gas: 500_000}, // from an address with code
		{From: from, To: &storer, Gas: 25_000_000, Data: w.pairs(3)},
		{From: stranger, To: &environment, Gas: 400_000},
		{From: stranger, To: &storer, Gas: 30_000, Data: w.pairs(4)}, // runs out of gas
		{From: stranger, Gas: 5_000_000, Data: make([]byte, params.MaxInitCodeSize+1)},
	}
	var txs []*opstack.Transaction
	for _, i := range w.rand.Perm(len(kinds))[:4] {
		txs = append(txs, w.deposit(kinds[i]))
	}
	return txs
}

func (w *world) sign(u *user, data types.TxData) *opstack.Transaction {
	w.t.Helper()
	signed, err := types.SignNewTx(u.key, types.LatestSignerForChainID(big.NewInt(chainID)), data)
	if err != nil {
		w.t.Fatal(err)
	}
	u.nonce++
	tx, err := opstack.NewSigned(signed)
	if err != nil {
		w.t.Fatal(err)
	}
	return tx
}

// send signs a transaction of a random type.
func (w *world) send(to *chain.Address, value uint64, gas uint64, data []byte) *opstack.Transaction {
	u := w.user()
	price, tip := big.NewInt(200e9), big.NewInt(int64(w.rand.Uint64N(3e9)))
	switch w.rand.IntN(3) {
	case 0:
		return w.sign(u, &types.LegacyTx{Nonce: u.nonce, GasPrice: price, Gas: gas, To: to, Value: new(big.Int).SetUint64(value), Data: data})
	case 1:
		list := types.AccessList{{Address: storer, StorageKeys: []chain.Hash{{31: 1}}}}
		return w.sign(u, &types.AccessListTx{ChainID: big.NewInt(chainID), Nonce: u.nonce, GasPrice: price, Gas: gas + 10_000, To: to, Value: new(big.Int).SetUint64(value), Data: data, AccessList: list})
	default:
		return w.sign(u, &types.DynamicFeeTx{ChainID: big.NewInt(chainID), Nonce: u.nonce, GasFeeCap: price, GasTipCap: tip, Gas: gas, To: to, Value: new(big.Int).SetUint64(value), Data: data})
	}
}

func (w *world) probe(precompile uint16, size uint32) []byte {
	data := make([]byte, 96)
	binary.BigEndian.PutUint16(data[30:], precompile)
	binary.BigEndian.PutUint32(data[60:], size)
	binary.BigEndian.PutUint32(data[92:], w.rand.Uint32N(1000)*4)
	return data
}

func (w *world) payers(block uint64) []*opstack.Transaction {
	noise := make([]byte, 1500)
	for i := range noise {
		if i%3 > 0 {
			noise[i] = byte(w.rand.Uint32())
		}
	}
	w.nextTo++
	fresh := chain.Address{0: 0xbb, 18: byte(block), 19: w.nextTo}
	txs := []*opstack.Transaction{
		w.send(&fresh, w.rand.Uint64(), 50_000, nil),
		w.send(&storer, 0, 800_000, w.pairs(8)),
		w.send(&reverter, 0, 100_000, w.pairs(2)),
		w.send(&environment, 3, 500_000, nil),
		w.send(&newEnvironment, 0, 200_000, nil),
		// The prices that this sets are for the next block.
		w.send(&l1Block, 0, 400_000, w.attributesData(block)),
		w.send(nil, 5, 900_000, chaingen.Deployer("CALLER 0 SSTORE", contracts[mortal])),
		w.send(nil, 9, 200_000, chaingen.Assemble("1 1 SSTORE CALLER SELFDESTRUCT")),
		w.send(&mortal, 0, 300_000, w.pairs(2)),
		w.send(&storer, 0, 30_000+uint64(len(noise))*40, noise[:64*20]),
		w.send(&fresh, 0, 200_000, noise),
		w.send(&storer, 0, 40_000, w.pairs(1+w.rand.IntN(3))), // may run out of gas
		w.send(&precompileProbe, 0, 400_000, w.probe(0x100, 160)),
		w.send(&precompileProbe, 0, 400_000, w.probe(uint16(1+w.rand.Uint32N(0x12)), w.rand.Uint32N(400))),
	}
	if w.rand.IntN(6) == 0 {
		txs = append(txs, w.send(&mortal, 0, 100_000, nil))
	}
	if at, _ := reached("isthmus", block); at {
		txs = append(txs, w.delegate())
	}
	return txs
}

// delegate lets an idle user's account run other code, or none again.
func (w *world) delegate() *opstack.Transaction {
	authority, u := w.idle[w.rand.IntN(len(w.idle))], w.user()
	target := []chain.Address{storer, reverter, {}}[w.rand.IntN(3)]
	auth, err := types.SignSetCode(authority.key, types.SetCodeAuthorization{ChainID: *uint256.NewInt(chainID), Address: target, Nonce: authority.nonce})
	if err != nil {
		w.t.Fatal(err)
	}
	authority.nonce++
	return w.sign(u, &types.SetCodeTx{
		ChainID: uint256.NewInt(chainID), Nonce: u.nonce, GasFeeCap: uint256.NewInt(200e9), GasTipCap: uint256.NewInt(1e9),
		Gas: 500_000, To: authority.addr, Data: w.pairs(2), AuthList: []types.SetCodeAuthorization{auth},
	})
}

// limits are inputs at the limits of precompiles and one element beyond.
func (w *world) limits(block uint64) []*opstack.Transaction {
	probes := map[string][][2]uint32{
		"granite": {{8, 112_687 / 192 * 192}, {8, 112_687/192*192 + 192}},
		"isthmus": {{0xc, 513_760}, {0xc, 513_760 + 160}, {0xe, 488_448}, {0xe, 488_448 + 288}, {0xf, 235_008}, {0xf, 235_008 + 384}},
		"jovian":  {{8, 81_984}, {8, 81_984 + 192}, {0xc, 288_960}, {0xc, 288_960 + 160}, {0xe, 278_784}, {0xe, 278_784 + 288}, {0xf, 156_672}, {0xf, 156_672 + 384}},
	}
	for fork, of := range probes {
		// Two at a time: each may take most of a block's gas.
		n := 2 * (int(block) - int(forkBlocks[fork]) - 1)
		if n >= 0 && n < len(of) {
			return []*opstack.Transaction{
				w.send(&precompileProbe, 0, 40_000_000, w.probe(uint16(of[n][0]), of[n][1])),
				w.send(&precompileProbe, 0, 40_000_000, w.probe(uint16(of[n+1][0]), of[n+1][1])),
			}
		}
	}
	return nil
}

// block returns the transactions of a block.
func (w *world) block(n uint64) []*opstack.Transaction {
	txs := []*opstack.Transaction{w.attributes(n)}
	if limits := w.limits(n); limits != nil {
		return append(txs, limits...)
	}
	txs = append(txs, w.deposits()...)
	if _, first := reached("jovian", n); first {
		return txs
	}
	return append(txs, w.payers(n)...)
}

func seedName(seed uint64) string { return fmt.Sprintf("seed=%d", seed) }
