// SPDX-License-Identifier: Apache-2.0

package pending_test

import (
	"crypto/ecdsa"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/holiman/uint256"

	"glimpse/chain"
	"glimpse/evm"
	"glimpse/flashblock"
	"glimpse/internal/chaingen"
	"glimpse/internal/memview"
	"glimpse/pending"
)

// rules joins evm to the tracker as a node does. While broken is set, nothing
// can be read.
type rules struct {
	*evm.Rules
	broken error
}

func (r *rules) Complete(header, parent *types.Header) {
	if !r.Config().IsCancun(header.Number, header.Time) {
		header.ParentBeaconRoot = nil
		return
	}
	excess := eip4844.CalcExcessBlobGas(r.Config(), parent, header.Time)
	header.ExcessBlobGas = &excess
}

func (r *rules) Begin(header, parent *types.Header, base chain.View, ancestors func(chain.Number) (chain.Hash, error)) (pending.Execution, error) {
	b, err := r.Rules.Begin(header, &brittle{View: base, rules: r}, ancestors)
	if err != nil {
		return nil, err
	}
	return execution{b}, nil
}

func (r *rules) Commits(h *types.Header, w types.Withdrawals) bool {
	return evm.CommitsTo(h, w)
}

func (r *rules) Transient(err error) bool { return errors.Is(err, evm.ErrStateRead) }

type execution struct{ *evm.Block }

func (e execution) Apply(m *flashblock.Message, _ chain.View) (*pending.Piece, error) {
	done := new(pending.Piece)
	for _, data := range m.Delta.Transactions {
		tx := new(types.Transaction)
		if err := tx.UnmarshalBinary(data); err != nil {
			return nil, err
		}
		done.Hashes, done.Transactions = append(done.Hashes, tx.Hash()), append(done.Transactions, tx)
	}
	var err error
	done.Diff, done.Receipts, err = e.Block.Apply(done.Transactions)
	done.Encoded = done.Receipts
	return done, err
}

func (e execution) Finish(body *types.Body) (*chain.Diff, error) {
	diff, _, err := e.Block.Finish(body)
	return diff, err
}

// A brittle View fails while its rules are broken.
type brittle struct {
	chain.View
	rules *rules
}

func (b *brittle) Account(a chain.Address) (chain.Account, error) {
	if b.rules.broken != nil {
		return chain.Account{}, b.rules.broken
	}
	return b.View.Account(a)
}

// A link is one sealed block of the world's chain.
type link struct {
	header *types.Header
	hash   chain.Hash
	txs    []*types.Transaction
	state  *memview.State
}

func (l *link) ref() chain.Ref {
	return chain.Ref{Number: chain.Number(l.header.Number.Uint64()), Hash: l.hash}
}

// A world is a sequencer: it pre-confirms and seals blocks, and can break its
// word.
type world struct {
	t      testing.TB
	rules  *rules
	random *rand.Rand
	keys   []*ecdsa.PrivateKey
	chain  []*link // from firstNumber on
	builds int
	open   int // states that were handed out and not released

	building *construction
}

// A construction is one build of a block.
type construction struct {
	w        *world
	payload  flashblock.PayloadID
	parent   *link
	header   *types.Header
	block    *evm.Block
	tally    *flashblock.Tally
	next     uint64
	txs      []*types.Transaction
	prefixes []int // how many transactions there are after each flashblock
	nonces   map[int]uint64
}

const firstNumber = 300

// The contracts: one that writes the pairs of slot and value in its data and is
// destroyed when it gets none, and one that makes such contracts.
var (
	store = `0 next: CALLDATASIZE DUP2 LT ISZERO @done JUMPI
		DUP1 32 ADD CALLDATALOAD DUP2 CALLDATALOAD SSTORE
		64 ADD @next JUMP done: `
	mortalCode  = chaingen.Assemble(`CALLDATASIZE ISZERO @die JUMPI ` + store + ` 7 0 0 LOG1 STOP die: 0 SELFDESTRUCT`)
	childInit   = chaingen.Deployer(`7 1 SSTORE`, mortalCode)
	factoryCode = chaingen.Assemble(`CALLDATASIZE 0 0 CALLDATACOPY 0 CALLDATASIZE 0 0 CREATE2 STOP`)
	mortal      = chain.Address{0xaa}
	factory     = chain.Address{0xbb}
	hashes      = chain.Address{0xee}
	child       = crypto.CreateAddress2(factory, chain.Hash{}, crypto.Keccak256(childInit))
)

func newWorld(t testing.TB, seed uint64, config params.ChainConfig) *world {
	t.Helper()
	r, err := evm.NewRules(&config)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, rules: &rules{Rules: r}, random: rand.New(rand.NewPCG(seed, 1))}
	state := memview.New()
	put := func(addr chain.Address, account chain.Account, code []byte) {
		d := &chain.Diff{Accounts: []chain.AccountDiff{{Address: addr, Changed: true, Account: account}}}
		if len(code) > 0 {
			d.Codes = []chain.Code{chain.NewCode(code)}
			d.Accounts[0].Account.CodeHash = d.Codes[0].Hash
		}
		if err := state.Apply(d); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 4 {
		key, err := crypto.ToECDSA(crypto.Keccak256(fmt.Appendf(nil, "key %d", i)))
		if err != nil {
			t.Fatal(err)
		}
		w.keys = append(w.keys, key)
		rich := chain.Account{Exists: true}
		rich.Balance.Lsh(uint256.NewInt(1), 100)
		put(crypto.PubkeyToAddress(key.PublicKey), rich, nil)
	}
	contract := chain.Account{Exists: true, Nonce: 1}
	put(mortal, contract, mortalCode)
	put(factory, contract, factoryCode)
	put(hashes, contract, chaingen.Assemble(`0 CALLDATALOAD BLOCKHASH 0 CALLDATALOAD SSTORE STOP`))
	header := &types.Header{Number: big.NewInt(firstNumber), Time: 1000, GasLimit: 30_000_000, Difficulty: new(big.Int), BaseFee: big.NewInt(7)}
	if config.CancunTime != nil {
		header.ExcessBlobGas, header.BlobGasUsed, header.ParentBeaconRoot = new(uint64), new(uint64), new(chain.Hash)
	}
	w.chain = []*link{{header: header, hash: header.Hash(), state: state}}
	return w
}

func (w *world) head() *link { return w.chain[len(w.chain)-1] }

// sealed returns the state of a link as the tracker takes it.
func (w *world) sealed(l *link) pending.Sealed {
	w.open++
	at := slices.Index(w.chain, l)
	return &sealed{link: l, below: slices.Clone(w.chain[:at]), release: func() { w.open-- }}
}

type sealed struct {
	*link
	below    []*link
	released bool
	release  func()
}

func (s *sealed) Head() chain.Ref       { return s.ref() }
func (s *sealed) Header() *types.Header { return s.header }
func (s *sealed) View() chain.View      { return s }
func (s *sealed) Release() {
	if s.released {
		panic("released twice")
	}
	s.released = true
	s.release()
}
func (s *sealed) Hash(n chain.Number) (chain.Hash, error) { return hashBelow(s.below, n) }

// A state that was released must not be read any more.
func (s *sealed) Account(a chain.Address) (chain.Account, error) {
	if s.released {
		return chain.Account{}, errors.New("read after release")
	}
	return s.state.Account(a)
}
func (s *sealed) Slot(a chain.Address, k chain.Slot) (chain.Value, error) {
	if s.released {
		return chain.Value{}, errors.New("read after release")
	}
	return s.state.Slot(a, k)
}
func (s *sealed) Code(h chain.Hash) ([]byte, error) { return s.state.Code(h) }

func hashBelow(links []*link, n chain.Number) (chain.Hash, error) {
	for _, l := range links {
		if l.ref().Number == n {
			return l.hash, nil
		}
	}
	return chain.Hash{31: byte(n), 0: 0xfe}, nil // older than the world
}

// begin starts a build of the block after parent.
func (w *world) begin(parent *link) *construction {
	w.t.Helper()
	w.builds++
	c := &construction{w: w, parent: parent, tally: flashblock.NewTally(), nonces: make(map[int]uint64)}
	binary.BigEndian.PutUint64(c.payload[:], uint64(w.builds))
	c.header = &types.Header{
		ParentHash: parent.hash, Number: new(big.Int).Add(parent.header.Number, big.NewInt(1)), Time: parent.header.Time + 2,
		GasLimit: 300_000_000, Difficulty: new(big.Int), BaseFee: big.NewInt(7), Coinbase: chain.Address{1},
		UncleHash: types.EmptyUncleHash, ParentBeaconRoot: new(chain.Hash), MixDigest: chain.Hash{0: byte(w.builds), 1: byte(w.builds >> 8)},
	}
	w.rules.Complete(c.header, parent.header)
	c.block = c.open()
	w.building = c
	return c
}

func (c *construction) open() *evm.Block {
	c.w.t.Helper()
	b, err := c.w.rules.Rules.Begin(c.header, c.parent.state, func(n chain.Number) (chain.Hash, error) {
		return hashBelow(c.w.chain, n)
	})
	if err != nil {
		c.w.t.Fatal(err)
	}
	return b
}

// flashblock adds transactions and returns the piece that announces them, as it
// comes out of the wire.
func (c *construction) flashblock(txs ...*types.Transaction) *flashblock.Message {
	t := c.w.t
	t.Helper()
	_, receipts, err := c.block.Apply(txs)
	if err == nil {
		err = c.tally.Add(receipts, receipts)
	}
	if err != nil {
		t.Fatal(err)
	}
	m := &flashblock.Message{
		Payload: c.payload, Index: c.next, Number: chain.Number(c.header.Number.Uint64()),
		Delta: flashblock.Delta{GasUsed: c.tally.GasUsed, LogsBloom: c.tally.Bloom, ReceiptsRoot: c.tally.ReceiptsRoot()},
	}
	for _, tx := range txs {
		raw, err := tx.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		m.Delta.Transactions = append(m.Delta.Transactions, raw)
	}
	if c.next == 0 {
		m.Base = &flashblock.Base{
			ParentHash: c.header.ParentHash, FeeRecipient: c.header.Coinbase, PrevRandao: c.header.MixDigest,
			GasLimit: c.header.GasLimit, Time: c.header.Time, BaseFee: uint256.MustFromBig(c.header.BaseFee),
		}
	}
	c.next++
	c.txs = append(c.txs, txs...)
	c.prefixes = append(c.prefixes, len(c.txs))
	text, err := flashblock.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = flashblock.Decode(text); err != nil {
		t.Fatal(err)
	}
	return m
}

// seal makes the block of what was announced, but for the transactions that
// revoked names.
func (c *construction) seal(revoked ...chain.Hash) *link {
	t := c.w.t
	t.Helper()
	b := c.open()
	kept := slices.Clone(c.txs)
	kept = slices.DeleteFunc(kept, func(tx *types.Transaction) bool { return slices.Contains(revoked, tx.Hash()) })
	_, receipts, err := b.Apply(kept)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Finish(new(types.Body)); err != nil {
		t.Fatal(err)
	}
	whole, err := b.Diff()
	if err != nil {
		t.Fatal(err)
	}
	tally := flashblock.NewTally()
	if err := tally.Add(receipts, receipts); err != nil {
		t.Fatal(err)
	}
	header := types.CopyHeader(c.header)
	header.GasUsed, header.Bloom, header.ReceiptHash = tally.GasUsed, tally.Bloom, tally.ReceiptsRoot()
	if header.ExcessBlobGas != nil {
		header.BlobGasUsed = new(uint64)
	}
	header.TxHash, header.WithdrawalsHash = types.DeriveSha(types.Transactions(kept), trie.NewStackTrie(nil)), &types.EmptyWithdrawalsHash
	l := &link{header: header, hash: header.Hash(), txs: kept, state: c.parent.state.Clone()}
	if err := l.state.Apply(whole); err != nil {
		t.Fatal(err)
	}
	c.w.chain = append(c.w.chain, l)
	c.w.building = nil
	return l
}

func (l *link) block() *pending.SealedBlock {
	s := &pending.SealedBlock{Hash: l.hash, Header: l.header}
	for _, tx := range l.txs {
		s.Transactions = append(s.Transactions, tx.Hash())
	}
	return s
}

// call returns a transaction of one of the keys.
func (c *construction) call(key int, to chain.Address, data ...byte) *types.Transaction {
	t := c.w.t
	t.Helper()
	addr := crypto.PubkeyToAddress(c.w.keys[key].PublicKey)
	if _, ok := c.nonces[key]; !ok {
		account, err := c.parent.state.Account(addr)
		if err != nil {
			t.Fatal(err)
		}
		c.nonces[key] = account.Nonce
	}
	tx, err := types.SignNewTx(c.w.keys[key], c.w.rules.Signer(c.header), &types.LegacyTx{
		To: &to, Data: data, Gas: 500_000, GasPrice: big.NewInt(10), Nonce: c.nonces[key],
	})
	if err != nil {
		t.Fatal(err)
	}
	c.nonces[key]++
	return tx
}

// write returns a transaction that writes a slot of the mortal contract.
func (c *construction) write(slot, value uint64) *types.Transaction {
	return c.call(0, mortal, pair(slot, value)...)
}

// some returns a few random transactions.
func (c *construction) some() (txs []*types.Transaction) {
	r := c.w.random
	for range r.IntN(4) {
		key := r.IntN(len(c.w.keys))
		switch r.IntN(8) {
		case 0:
			txs = append(txs, c.call(key, factory, childInit...))
		case 1:
			txs = append(txs, c.call(key, child)) // destroys it
		case 2:
			number := word(c.header.Number.Uint64() - 1 - uint64(r.IntN(4)))
			txs = append(txs, c.call(key, hashes, number[:]...))
		case 3:
			txs = append(txs, c.call(key, child, pair(uint64(r.IntN(4)), uint64(r.IntN(3)))...))
		default:
			txs = append(txs, c.call(key, mortal, pair(uint64(r.IntN(6)), uint64(r.IntN(4)))...))
		}
	}
	return txs
}

func pair(slot, value uint64) []byte {
	s, v := word(slot), word(value)
	return append(s[:], v[:]...)
}

func word(n uint64) (h chain.Hash) {
	binary.BigEndian.PutUint64(h[24:], n)
	return h
}

// shanghai destroys contracts, cancun only those that are new.
func shanghai() params.ChainConfig {
	c := *params.MergedTestChainConfig
	c.CancunTime, c.PragueTime, c.OsakaTime, c.BPO1Time, c.BPO2Time, c.AmsterdamTime = nil, nil, nil, nil, nil, nil
	c.BPO3Time, c.BPO4Time, c.BPO5Time, c.BogotaTime, c.UBTTime = nil, nil, nil, nil, nil
	return c
}

func cancun() params.ChainConfig {
	c := shanghai()
	c.CancunTime = new(uint64)
	return c
}

func addressOf(key *ecdsa.PrivateKey) chain.Address { return crypto.PubkeyToAddress(key.PublicKey) }
