// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
)

// ErrEvent is wrapped by every error about bytes that are no event.
var ErrEvent = errors.New("malformed event")

// DecodeEvent reads one encoded Event, which must be all of data and in the one
// form that AppendEvent writes. What it allocates is in proportion to data. The
// result shares no memory with data.
func DecodeEvent(data []byte) (*Event, error) {
	r := reader{rest: data}
	if v := r.byte(); v != eventVersion {
		r.fail("version %d, this program reads %d", v, eventVersion)
	}
	k := kind(r.byte())
	e := new(Event)
	e.Chain.ChainID = r.uvarint()
	e.Chain.Genesis = r.hash()
	e.Epoch = r.uvarint()
	e.Order = r.uvarint()
	e.Body = r.body(k)
	switch {
	case r.err != nil:
		return nil, r.err
	case len(r.rest) > 0:
		return nil, fmt.Errorf("%w: %d bytes after the end", ErrEvent, len(r.rest))
	}
	return e, nil
}

// A reader takes values off the front of rest. After the first error all further
// ones are zero, so that the reading code need not check each step.
type reader struct {
	rest []byte
	err  error
}

// The least that one element of each kind takes, to refuse a false count before
// looping over it.
const (
	minPart    = 1 + 1 + 1 + 1 + 1 + 1 + 1
	minReceipt = 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 20 + 1
	minLog     = 20 + 1 + 1
	minLayer   = 1 + 1
)

func (r *reader) body(k kind) Body {
	switch k {
	case kindSealed:
		return r.sealed()
	case kindUnwound:
		return &Unwound{To: r.ref(), Goal: r.ref()}
	case kindTags:
		return &Tags{Head: r.ref(), Marks: r.marks()}
	case kindFacts:
		f := &Facts{Head: r.ref()}
		d := r.diff()
		if r.err != nil {
			return f
		}
		var err error
		if f.Facts, err = factsOf(d); err != nil {
			r.fail("%v", err)
		}
		return f
	case kindPending:
		return r.pending()
	}
	r.fail("kind %d", k)
	return nil
}

func (r *reader) sealed() *Sealed {
	s := &Sealed{Ref: r.ref(), Parent: r.hash(), Header: r.bytes(), Body: r.bytes()}
	if n := r.count(len(chain.Hash{})); n > 0 {
		s.Transactions = make([]chain.Hash, n)
		for i := range s.Transactions {
			s.Transactions[i] = r.hash()
		}
	}
	s.Receipts = r.bytes()
	s.Diff = r.diff()
	s.Marks = r.marks()
	s.Digest = Digest(r.hash())
	return s
}

func (r *reader) pending() *Pending {
	p := &Pending{Parent: r.ref(), Base: r.uvarint()}
	ms := r.uvarint()
	if ms > uint64(maxGoodFor.Milliseconds()) {
		r.fail("good for %d ms", ms)
	}
	p.GoodFor = time.Duration(ms) * time.Millisecond
	if p.Why = Reason(r.byte()); int(p.Why) >= len(reasons) {
		r.fail("%v", p.Why)
	}
	for range r.count(minPart) {
		if part := r.part(); r.err == nil {
			p.Blocks = append(p.Blocks, part)
		}
	}
	return p
}

func (r *reader) part() (p Part) {
	p.Header = r.header()
	p.Index = r.uvarint()
	p.First = r.index()
	known := r.byte()
	if known&^(knownTransactions|knownReceipts) != 0 {
		r.fail("flags %#x of what is known of transactions", known)
	}
	bodies, receipts := known&knownTransactions != 0, known&knownReceipts != 0
	n := r.count(len(chain.Hash{}) + int(flag(bodies)) + int(flag(receipts))*minReceipt)
	if n == 0 && !(bodies && receipts) {
		r.fail("nothing is unknown of no transactions")
	}
	for i := range n {
		if r.err != nil {
			return p
		}
		h := r.hash()
		p.Hashes = append(p.Hashes, h)
		if bodies {
			p.Transactions = append(p.Transactions, r.transaction(h))
		}
		if receipts {
			p.Receipts = append(p.Receipts, r.receipt(p.Header, h, p.First+i))
		}
	}
	for range r.count(minLayer) {
		first := r.index()
		if d := r.diff(); r.err == nil {
			p.Layers = append(p.Layers, Layer{First: first, Diff: d})
		}
	}
	return p
}

func (r *reader) transaction(hash chain.Hash) *types.Transaction {
	tx := new(types.Transaction)
	raw := r.take(r.count(1))
	if r.err != nil {
		return tx
	}
	if err := tx.UnmarshalBinary(raw); err != nil {
		r.fail("transaction %s: %v", hash, err)
	} else if tx.Hash() != hash || tx.BlobTxSidecar() != nil {
		r.fail("transaction %s is another, or has a sidecar", hash)
	}
	return tx
}

func (r *reader) receipt(block *types.Header, hash chain.Hash, index int) *types.Receipt {
	t := &types.Receipt{
		Type: r.byte(), PostState: r.bytes(), Status: r.uvarint(), CumulativeGasUsed: r.uvarint(),
		GasUsed: r.uvarint(), BlobGasUsed: r.uvarint(), EffectiveGasPrice: r.big(), BlobGasPrice: r.big(),
		TxHash: hash, BlockNumber: block.Number, TransactionIndex: uint(index),
	}
	copy(t.ContractAddress[:], r.take(len(t.ContractAddress)))
	n := r.count(minLog)
	t.Logs = make([]*types.Log, 0, n)
	first := 0
	if n > 0 {
		first = r.index()
	}
	for i := range n {
		l := &types.Log{TxHash: hash, TxIndex: uint(index), Index: uint(first + i), BlockTimestamp: block.Time}
		if block.Number != nil {
			l.BlockNumber = block.Number.Uint64()
		}
		copy(l.Address[:], r.take(len(l.Address)))
		topics := r.count(len(chain.Hash{}))
		l.Topics = make([]chain.Hash, topics)
		for k := range l.Topics {
			l.Topics[k] = r.hash()
		}
		l.Data = r.bytes()
		if r.err != nil {
			return t
		}
		t.Logs = append(t.Logs, l)
	}
	t.Bloom = types.CreateBloom(t)
	return t
}

func (r *reader) big() *big.Int {
	n := r.uvarint()
	if n == 0 {
		return nil
	}
	if n > 33 {
		r.fail("number of %d bytes", n-1)
		return nil
	}
	b := r.take(int(n - 1))
	if len(b) > 0 && b[0] == 0 {
		r.fail("number with leading zero")
	}
	return new(big.Int).SetBytes(b)
}

func (r *reader) diff() *chain.Diff {
	data := r.take(r.count(1))
	if r.err != nil {
		return nil
	}
	d, err := chain.DecodeDiff(data)
	if err != nil {
		r.fail("%v", err)
	}
	return d
}

func (r *reader) marks() (m Marks) {
	flags := r.byte()
	if flags&^(markSafe|markFinalized) != 0 {
		r.fail("marks %#x", flags)
	}
	if flags&markSafe != 0 {
		ref := r.ref()
		m.Safe = &ref
	}
	if flags&markFinalized != 0 {
		ref := r.ref()
		m.Finalized = &ref
	}
	return m
}

func (r *reader) ref() chain.Ref { return chain.Ref{Number: r.number(), Hash: r.hash()} }

func (r *reader) number() chain.Number {
	n := chain.Number(r.uvarint())
	if n > chain.MaxNumber {
		r.fail("block %d", n)
	}
	return n
}

// index reads a position in a block, which fits into every int.
func (r *reader) index() int {
	n := r.uvarint()
	if n > 1<<30 {
		r.fail("index %d", n)
		return 0
	}
	return int(n)
}

func (r *reader) hash() (h chain.Hash) {
	copy(h[:], r.take(len(h)))
	return h
}

// bytes reads a copy of bytes with their length; nil where there are none.
func (r *reader) bytes() []byte {
	b := r.take(r.count(1))
	if len(b) == 0 {
		return nil
	}
	return slices.Clone(b)
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) take(n int) []byte {
	if r.err != nil {
		return nil
	}
	if n > len(r.rest) {
		r.fail("ends early")
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// count reads how many elements follow, each of at least size bytes.
func (r *reader) count(size int) int {
	n := r.uvarint()
	if n > uint64(len(r.rest)/size) {
		r.fail("count %d is more than fits", n)
		return 0
	}
	return int(n)
}

func (r *reader) uvarint() uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || n > 1 && r.rest[n-1] == 0 {
		r.fail("bad or overlong number")
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrEvent, fmt.Sprintf(format, args...))
		r.rest = nil
	}
}
