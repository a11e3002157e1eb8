// SPDX-License-Identifier: Apache-2.0

package replicatest

import (
	"crypto/sha256"
	"encoding/binary"
	"math/big"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/replica"
	"glimpse/replica/stream"
)

// A Writer is a chain with what is pre-confirmed on it. It is safe for concurrent
// use, and the stream.Journal of its blocks.
type Writer struct {
	ID replica.Identity

	// Padding is how many bytes each block has beside the rest.
	Padding int

	executes bool // receipts of flashblocks are known

	mu      sync.Mutex
	random  *rand.Rand
	blocks  []*replica.Sealed // from genesis on; replaced, never changed
	oldest  chain.Number
	marks   replica.Marks
	overlay *replica.Overlay
	count   uint64 // makes what is new different from all before
}

// NewWriter returns a chain of a genesis block.
func NewWriter(seed uint64) *Writer {
	w := &Writer{random: rand.New(rand.NewPCG(seed, 7)), executes: seed%4 > 0}
	genesis := &replica.Sealed{Ref: chain.Ref{Hash: w.hash()}, Diff: new(chain.Diff)}
	genesis.Digest = NextDigest(replica.Digest{}, genesis)
	w.ID = replica.Identity{ChainID: 1 + seed, Genesis: genesis.Hash}
	w.blocks = []*replica.Sealed{genesis}
	w.overlay = &replica.Overlay{Parent: genesis.Ref}
	return w
}

// NextDigest is the digest after a block.
func NextDigest(before replica.Digest, s *replica.Sealed) replica.Digest {
	data := append(before[:], s.Hash[:]...)
	for _, part := range [][]byte{s.Header, s.Body, s.Receipts, chain.AppendDiff(nil, s.Diff)} {
		data = append(binary.AppendUvarint(data, uint64(len(part))), part...)
	}
	for _, h := range s.Transactions {
		data = append(data, h[:]...)
	}
	return sha256.Sum256(data)
}

func (w *Writer) hash() (h chain.Hash) {
	w.count++
	for i := range 4 {
		binary.BigEndian.PutUint64(h[8*i:], w.random.Uint64())
	}
	binary.BigEndian.PutUint64(h[:], w.count)
	return h
}

func (w *Writer) diff() *chain.Diff {
	d := new(chain.Diff)
	for i := range 1 + w.random.IntN(3) {
		a := chain.AccountDiff{Address: chain.Address{19: byte(i)}, Wiped: w.random.IntN(9) == 0}
		a.Slots = []chain.SlotDiff{{Slot: chain.Slot{31: byte(w.random.IntN(4))}, Value: w.hash()}}
		d.Accounts = append(d.Accounts, a)
	}
	return d
}

func (w *Writer) head() *replica.Sealed { return w.blocks[len(w.blocks)-1] }

// Head returns the newest block.
func (w *Writer) Head() chain.Ref {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.head().Ref
}

// Overlay returns what is pre-confirmed.
func (w *Writer) Overlay() *replica.Overlay {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.overlay
}

// Seal adds a block: the one that was promised where something was, so that what
// stands on it stays.
func (w *Writer) Seal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seal()
}

func (w *Writer) seal() {
	ref := chain.Ref{Number: w.head().Number + 1, Hash: w.hash()}
	var transactions []chain.Hash
	next := &replica.Overlay{Parent: ref}
	if promised := w.overlay.Blocks; len(promised) > 0 {
		transactions = promised[0].Block.Hashes
		if len(promised) > 1 {
			ref.Hash = promised[1].Block.Header.ParentHash
			next = &replica.Overlay{Parent: ref, Blocks: slices.Clone(promised[1:])}
		}
	}
	w.add(ref, transactions)
	w.overlay = next
}

func (w *Writer) add(ref chain.Ref, transactions []chain.Hash) {
	s := &replica.Sealed{
		Ref: ref, Parent: w.head().Hash, Header: []byte{1, byte(ref.Number)}, Receipts: []byte("receipts"),
		Transactions: transactions, Diff: w.diff(),
	}
	if w.Padding > 0 {
		s.Body = make([]byte, w.Padding)
		binary.BigEndian.PutUint64(s.Body, w.count)
	}
	s.Digest = NextDigest(w.head().Digest, s)
	w.blocks = append(slices.Clip(w.blocks), s)
}

// Reorganise takes blocks away and adds others. What was pre-confirmed is void.
func (w *Writer) Reorganise(removed, added int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	removed = min(removed, len(w.blocks)-1)
	w.blocks = slices.Clip(w.blocks[:len(w.blocks)-removed])
	kept := w.head().Ref
	w.marks.Safe, w.marks.Finalized = below(w.marks.Safe, kept), below(w.marks.Finalized, kept)
	for range added {
		w.add(chain.Ref{Number: w.head().Number + 1, Hash: w.hash()}, nil)
	}
	w.overlay = &replica.Overlay{Parent: w.head().Ref}
}

func below(mark *chain.Ref, head chain.Ref) *chain.Ref {
	if mark == nil || mark.Number > head.Number {
		return nil
	}
	return mark
}

// Finalize calls the head safe and its parent finalized.
func (w *Writer) Finalize() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.blocks) > 1 {
		safe, final := w.head().Ref, w.blocks[len(w.blocks)-2].Ref
		w.marks = replica.Marks{Safe: &safe, Finalized: &final}
	}
}

// Prune forgets what blocks up to n changed.
func (w *Writer) Prune(n chain.Number) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.oldest = max(w.oldest, n)
}

// Flashblock adds one to the newest pre-confirmed block, or begins one above it.
func (w *Writer) Flashblock(begin bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	blocks := slices.Clone(w.overlay.Blocks)
	var was chain.Preconfirmed
	var layers []replica.Layer
	if begin || len(blocks) == 0 {
		parent, number := w.overlay.Parent.Hash, uint64(w.overlay.Parent.Number)+uint64(len(blocks))+1
		if len(blocks) > 0 {
			parent = w.hash()
		}
		was.Header = &types.Header{ParentHash: parent, Number: new(big.Int).SetUint64(number), Difficulty: new(big.Int), Time: number}
		blocks = append(blocks, replica.OverlayBlock{})
	} else {
		was = *blocks[len(blocks)-1].Block
		was.Index++
		layers = blocks[len(blocks)-1].Layers
	}
	first := len(was.Hashes)
	header := types.CopyHeader(was.Header)
	for i := range w.random.IntN(3) {
		tx, receipt := w.transaction(header, first+i)
		was.Hashes = append(slices.Clip(was.Hashes), tx.Hash())
		was.Transactions = append(slices.Clip(was.Transactions), tx)
		if w.executes {
			was.Receipts = append(slices.Clip(was.Receipts), receipt)
		}
		header.GasUsed = receipt.CumulativeGasUsed
	}
	was.Header = header
	blocks[len(blocks)-1] = replica.OverlayBlock{
		Block: &was, Layers: append(slices.Clip(layers), replica.Layer{First: first, Diff: w.diff()}),
	}
	w.overlay = &replica.Overlay{Parent: w.overlay.Parent, Blocks: blocks}
}

func (w *Writer) transaction(block *types.Header, index int) (*types.Transaction, *types.Receipt) {
	w.count++
	tx := types.NewTx(&types.LegacyTx{Nonce: w.count, Gas: 21000, GasPrice: big.NewInt(1), Data: []byte{1}, V: big.NewInt(27), R: big.NewInt(1), S: big.NewInt(1)})
	r := &types.Receipt{
		Status: 1, CumulativeGasUsed: block.GasUsed + 21000, GasUsed: 21000, EffectiveGasPrice: big.NewInt(1), TxHash: tx.Hash(),
		BlockNumber: block.Number, TransactionIndex: uint(index), Logs: []*types.Log{{
			Address: chain.Address{1}, Topics: []chain.Hash{{2}}, Data: []byte{3}, TxHash: tx.Hash(), TxIndex: uint(index),
			Index: uint(index), BlockNumber: block.Number.Uint64(), BlockTimestamp: block.Time,
		}},
	}
	r.Bloom = types.CreateBloom(r)
	return tx, r
}

// Withdraw takes all pre-confirmed state back.
func (w *Writer) Withdraw() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.overlay = &replica.Overlay{Parent: w.head().Ref}
}

// Step does something at random.
func (w *Writer) Step() {
	w.mu.Lock()
	choice, depth, added := w.random.IntN(20), 1+w.random.IntN(3), w.random.IntN(5)
	if len(w.blocks) <= depth {
		choice = 0 // there is nothing to reorganise
	}
	w.mu.Unlock()
	switch {
	case choice < 5:
		w.Seal()
	case choice < 6:
		w.Reorganise(depth, added)
	case choice < 7:
		w.Finalize()
	case choice < 8:
		w.Withdraw()
	case choice < 11:
		w.Flashblock(true)
	default:
		w.Flashblock(false)
	}
}

// snapshot is a Writer's blocks at one moment.
type snapshot struct {
	blocks []*replica.Sealed
	oldest chain.Number
	marks  replica.Marks
}

// Open implements stream.Journal.
func (w *Writer) Open() (stream.Chain, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &snapshot{w.blocks, w.oldest, w.marks}, nil
}

func (s *snapshot) Head() chain.Ref      { return s.blocks[len(s.blocks)-1].Ref }
func (s *snapshot) Oldest() chain.Number { return s.oldest }
func (s *snapshot) Marks() replica.Marks { return s.marks }
func (s *snapshot) Release()             {}

func (s *snapshot) Hash(n chain.Number) (chain.Hash, error) {
	if n >= chain.Number(len(s.blocks)) {
		return chain.Hash{}, &chain.Miss{Reason: chain.Future}
	}
	return s.blocks[n].Hash, nil
}

func (s *snapshot) Sealed(n chain.Number) (*replica.Sealed, error) {
	if n >= chain.Number(len(s.blocks)) || n <= s.oldest && n > 0 {
		return nil, &chain.Miss{Reason: chain.Pruned}
	}
	b := *s.blocks[n]
	return &b, nil
}
