// SPDX-License-Identifier: Apache-2.0

package opstack

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/chain"
	"glimpse/evm"
)

// ErrRefundsChanged says that transactions which were applied already are to be
// refunded otherwise than they were. The block must be begun again.
var ErrRefundsChanged = errors.New("refunds of earlier transactions changed")

// refunds are what a post-execution transaction says: gas that the sequencer
// gives back, since Lagoon.
type refunds struct {
	Version uint64
	Block   uint64
	Entries []refund
}

type refund struct {
	Index uint64 // of a signed transaction
	Gas   uint64
}

const refundsVersion = 1

func decodeRefunds(data []byte) (*refunds, error) {
	content, _, err := rlp.SplitList(data)
	if err != nil {
		return nil, err
	}
	version, _, err := rlp.SplitUint64(content)
	if err != nil {
		return nil, err
	}
	if version != refundsVersion {
		return nil, fmt.Errorf("%w: post-execution transaction of version %d", evm.ErrUnsupported, version)
	}
	r := new(refunds)
	if err := rlp.DecodeBytes(data, r); err != nil {
		return nil, err
	}
	if len(r.Entries) == 0 {
		return nil, errors.New("no refunds")
	}
	for i, e := range r.Entries {
		if e.Gas == 0 || i > 0 && e.Index <= r.Entries[i-1].Index {
			return nil, fmt.Errorf("refund %d is zero or out of order", i)
		}
	}
	return r, nil
}

// of returns what is given back to the transaction at index.
func (r *refunds) of(index int) uint64 {
	if r == nil {
		return 0
	}
	at, found := slices.BinarySearchFunc(r.Entries, uint64(index), func(e refund, index uint64) int {
		return cmp.Compare(e.Index, index)
	})
	if !found {
		return 0
	}
	return r.Entries[at].Gas
}

// Announce says by which post-execution transaction the ones applied from now on
// are refunded; nil is by none. Feeds carry a new one with each flashblock, and
// where it says something else about transactions that were applied already,
// the error is ErrRefundsChanged. In a sealed block it is the last transaction,
// which must be applied too.
func (b *Block) Announce(tx *Transaction) error {
	if b.err != nil {
		return b.err
	}
	var next *refunds
	if tx != nil {
		next = tx.refunds
		if err := b.checkRefunds(tx); err != nil {
			return b.die(err)
		}
	}
	for i := range b.receipts {
		if b.refunds.of(i) != next.of(i) {
			return b.die(ErrRefundsChanged)
		}
	}
	b.refunds, b.announced = next, tx
	return nil
}

func (b *Block) checkRefunds(tx *Transaction) error {
	number := chain.Number(b.header.Number.Uint64())
	switch {
	case tx.refunds == nil:
		return fmt.Errorf("announce transaction %s: not a post-execution transaction", tx.hash)
	case !active(b.rules.config.Forks.Lagoon, b.header.Time):
		return b.invalid("post-execution transaction before Lagoon", nil)
	case chain.Number(tx.refunds.Block) != number:
		return b.mismatch("block number in post-execution transaction", tx.refunds.Block, number)
	}
	return nil
}
