// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
)

// A SealedBlock is what is compared of a block that was sealed.
type SealedBlock struct {
	Hash         chain.Hash
	Header       *types.Header
	Transactions []chain.Hash
	Withdrawals  types.Withdrawals

	// PostExecution says that the last transaction is one that some chains add
	// when they seal (type 0x7D). It is never pre-confirmed among the others.
	PostExecution bool
}

// NewSealedBlock describes a block.
func NewSealedBlock(block *types.Block) *SealedBlock {
	s := &SealedBlock{Hash: block.Hash(), Header: block.Header(), Withdrawals: block.Withdrawals()}
	for _, tx := range block.Transactions() {
		s.Transactions = append(s.Transactions, tx.Hash())
	}
	return s
}

// Ref names the block.
func (s *SealedBlock) Ref() chain.Ref {
	return chain.Ref{Number: chain.Number(s.Header.Number.Uint64()), Hash: s.Hash}
}

// A Promise is what is compared of a block that was pre-confirmed.
type Promise struct {
	Header       *types.Header
	Transactions []chain.Hash
	Withdrawals  types.Withdrawals
}

// An Outcome says what a sealed block does to the blocks that were pre-confirmed.
type Outcome int

const (
	// Keep: it does not concern them.
	Keep Outcome = iota + 1

	// Promote: it is the lowest of them as it was executed here. Those above
	// stay as they are, on the sealed block.
	Promote

	// Rebase: it holds what was pre-confirmed and more, or by other inputs. Those
	// above have to be executed again.
	Rebase

	// Discard: it does not hold what was pre-confirmed, or is on another branch.
	Discard
)

var outcomes = map[Outcome]string{Keep: "keep", Promote: "promote", Rebase: "rebase", Discard: "discard"}

// String returns the name in lower case.
func (o Outcome) String() string { return outcomes[o] }

// A Decision is an Outcome and what follows from it.
type Decision struct {
	Outcome Outcome

	// Above says that the block after the sealed one stands on it; otherwise it
	// and all above are void.
	Above bool

	// Revoked are the transactions that were pre-confirmed, are not in the sealed
	// block and have no place above it.
	Revoked []chain.Hash
}

// Reconcile decides what a newly sealed block does to the promises, which stand
// on parent, the lowest first.
func Reconcile(parent chain.Ref, promises []Promise, s *SealedBlock) Decision {
	ref := s.Ref()
	switch {
	case ref == parent || len(promises) == 0:
		return Decision{Outcome: Keep, Above: true}
	case ref.Number <= parent.Number,
		ref.Number == parent.Number+1 && s.Header.ParentHash != parent.Hash:
		return Decision{Outcome: Discard, Revoked: revoked(promises, s)} // another branch
	}
	offset := ref.Number - parent.Number - 1
	if offset >= chain.Number(len(promises)) {
		return Decision{Outcome: Rebase} // sealed blocks went by unseen, and what they held is not known
	}
	promise, above := &promises[offset], promises[offset+1:]
	d := Decision{
		Outcome: promise.meets(s, offset == 0),
		Above:   len(above) > 0 && above[0].Header.ParentHash == s.Hash,
	}
	if d.Outcome == Discard {
		d.Revoked = revoked(promises[offset:offset+1], s)
	}
	if !d.Above {
		d.Revoked = append(d.Revoked, revoked(above, s)...)
	}
	return d
}

func (p *Promise) meets(s *SealedBlock, onParent bool) Outcome {
	sealed := s.Transactions
	if s.PostExecution && len(sealed) > 0 {
		sealed = sealed[:len(sealed)-1]
	}
	switch {
	case len(p.Transactions) > len(sealed) || !slices.Equal(p.Transactions, sealed[:len(p.Transactions)]):
		return Discard
	case onParent && len(p.Transactions) == len(sealed) && p.sameResult(s.Header) && slices.EqualFunc(p.Withdrawals, s.Withdrawals, equal):
		return Promote
	default:
		return Rebase
	}
}

// sameResult reports whether the block was executed here on the inputs that the
// sealed one names and gave the same receipts, so that its state is the same if
// its transactions and withdrawals are.
func (p *Promise) sameResult(b *types.Header) bool {
	a := p.Header
	return a.ParentHash == b.ParentHash &&
		a.Coinbase == b.Coinbase &&
		a.MixDigest == b.MixDigest &&
		a.GasLimit == b.GasLimit &&
		a.Time == b.Time &&
		equalInts(a.BaseFee, b.BaseFee) &&
		equal(a.ParentBeaconRoot, b.ParentBeaconRoot) &&
		equal(a.ExcessBlobGas, b.ExcessBlobGas) &&
		a.GasUsed == b.GasUsed &&
		a.ReceiptHash == b.ReceiptHash &&
		a.Bloom == b.Bloom
}

func equal[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func equalInts(a, b *big.Int) bool {
	return a == b || a != nil && b != nil && a.Cmp(b) == 0
}

// revoked lists what was promised and is not in s.
func revoked(promises []Promise, s *SealedBlock) (hashes []chain.Hash) {
	sealed := make(map[chain.Hash]bool, len(s.Transactions))
	for _, hash := range s.Transactions {
		sealed[hash] = true
	}
	for _, p := range promises {
		for _, hash := range p.Transactions {
			if !sealed[hash] {
				hashes = append(hashes, hash)
			}
		}
	}
	return hashes
}
