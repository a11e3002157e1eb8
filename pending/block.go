// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/flashblock"
)

// A block is one block of the stack, with its execution.
type block struct {
	build     *build
	base      *anchor // what its execution reads from
	header    *types.Header
	execution Execution
	tally     *flashblock.Tally
	finished  bool

	// now is the block as it is published. Its slices are prefixes of those
	// below, which only grow.
	now      *chain.Preconfirmed
	hashes   []chain.Hash
	txs      []*types.Transaction
	receipts []*types.Receipt
}

// next is the index that the block waits for.
func (b *block) next() uint64 { return b.now.Index + 1 }

func (b *block) last() *flashblock.Message { return b.build.messages[b.now.Index] }

func (b *block) position() flashblock.Position { return b.last().Position() }

func (b *block) promise() Promise {
	return Promise{Header: b.now.Header, Transactions: b.now.Hashes, Withdrawals: b.last().Delta.Withdrawals}
}

func (b *block) describe() flashblock.Build {
	d := flashblock.Build{
		Payload: b.build.payload,
		Parent:  b.header.ParentHash,
		Last:    b.now.Index,
		Frozen:  uint64(len(b.build.messages)) > b.next(), // all up to the last one are among them
	}
	// Where the sequencer leaves out the state root, its block hash is not the
	// one that the block will have.
	if delta := &b.last().Delta; delta.StateRoot != (chain.Hash{}) {
		d.Hash = delta.BlockHash
	}
	return d
}

// begin opens the block of a build on top of the stack. The block is not part of
// the stack yet; whoever drops it drops its base.
func (t *Tracker) begin(b *build) (*block, error) {
	parent := t.sealed.Header()
	if len(t.stack) > 0 {
		parent = t.stack[len(t.stack)-1].now.Header
	}
	header := headerOf(b.messages[0])
	t.executor.Complete(header, parent)
	execution, err := t.executor.Begin(header, parent, t.state(), t.ancestors())
	if err != nil {
		return nil, fmt.Errorf("begin block %d: %w", b.number, err)
	}
	return &block{build: b, base: t.sealed.hold(), header: header, execution: execution, tally: flashblock.NewTally()}, nil
}

// state is that after all that is pre-confirmed.
func (t *Tracker) state() chain.View {
	if len(t.stack) == 0 {
		return t.sealed.View()
	}
	return t.overlay.On(t.sealed.View())
}

func headerOf(first *flashblock.Message) *types.Header {
	base := first.Base
	root := base.ParentBeaconRoot
	return &types.Header{
		ParentHash:       base.ParentHash,
		UncleHash:        types.EmptyUncleHash,
		Coinbase:         base.FeeRecipient,
		Difficulty:       new(big.Int),
		Number:           new(big.Int).SetUint64(uint64(first.Number)),
		GasLimit:         base.GasLimit,
		Time:             base.Time,
		Extra:            base.ExtraData,
		MixDigest:        base.PrevRandao,
		BaseFee:          base.BaseFee.ToBig(),
		ParentBeaconRoot: &root,
	}
}

// ancestors returns what answers for the hashes of blocks below the parent of
// the next block. That of a block that is not sealed is the one that the block
// above it names.
func (t *Tracker) ancestors() func(chain.Number) (chain.Hash, error) {
	sealed := t.sealed.Sealed
	head := sealed.Head()
	parents := make([]chain.Hash, len(t.stack))
	for i, b := range t.stack {
		parents[i] = b.header.ParentHash
	}
	return func(n chain.Number) (chain.Hash, error) {
		if offset := n - head.Number; n >= head.Number && offset < chain.Number(len(parents)) {
			return parents[offset], nil
		}
		if n == head.Number {
			return head.Hash, nil
		}
		return sealed.Hash(n)
	}
}

// A step is what one flashblock made of its block.
type step struct {
	block *chain.Preconfirmed
	diff  *chain.Diff
	from  int // the first transaction that it added
}

// execute applies the next piece to the state before it and compares its
// checksums.
func (b *block) execute(m *flashblock.Message, before chain.View) (step, error) {
	done, err := b.execution.Apply(m, before)
	if err == nil && done.Encoded != nil {
		err = b.check(m, done)
	}
	if err != nil {
		return step{}, fmt.Errorf("flashblock %s: %w", m.Position(), err)
	}
	from := len(b.hashes)
	b.hashes = append(b.hashes, done.Hashes...)
	b.txs = append(b.txs, done.Transactions...)
	b.receipts = append(b.receipts, done.Receipts...)
	header := types.CopyHeader(b.header)
	header.GasUsed, header.Bloom, header.ReceiptHash = m.Delta.GasUsed, m.Delta.LogsBloom, m.Delta.ReceiptsRoot
	if header.ExcessBlobGas != nil {
		header.BlobGasUsed = b.blobGas(m, done.Transactions)
	}
	b.now = &chain.Preconfirmed{
		Header:       header,
		Index:        m.Index,
		Hashes:       slices.Clip(b.hashes),
		Transactions: slices.Clip(b.txs),
		Receipts:     slices.Clip(b.receipts),
	}
	return step{block: b.now, diff: done.Diff, from: from}, nil
}

// check compares what a piece did with what the feed says of it.
func (b *block) check(m *flashblock.Message, done *Piece) error {
	if err := b.tally.Add(done.Receipts, done.Encoded); err != nil {
		return err
	}
	return b.tally.Check(&m.Delta)
}

// blobGas is what the feed says, or else what the transactions buy.
func (b *block) blobGas(m *flashblock.Message, added []*types.Transaction) *uint64 {
	var used uint64
	if m.Delta.BlobGasUsed != nil {
		used = *m.Delta.BlobGasUsed
		return &used
	}
	if b.now != nil {
		used = *b.now.Header.BlobGasUsed
	}
	for _, tx := range added {
		used += tx.BlobGas()
	}
	return &used
}

// finish executes what follows the last transaction of the block on top, as if
// it were complete, so that another can stand on it.
func (t *Tracker) finish(b *block) error {
	if b.finished {
		return nil
	}
	diff, err := b.execution.Finish(&types.Body{Withdrawals: b.last().Delta.Withdrawals})
	if err != nil {
		return fmt.Errorf("finish block %d: %w", b.build.number, err)
	}
	b.finished = true
	if !diff.Empty() {
		t.overlay = t.overlay.extend(b.now, diff, len(b.hashes))
	}
	return nil
}
