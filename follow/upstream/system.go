// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/binary"
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"

	"glimpse/chain"
)

// ringLength is how many entries the contracts of EIP-4788 and EIP-2935 keep.
const ringLength = params.HistoryServeWindow

// beforeTransactions makes the changes of the system calls that come first. A
// header has a beacon root from Cancun on and a requests hash from Prague on; a
// chain that never deployed the contract has nothing to change.
func (f *fold) beforeTransactions(h *types.Header) error {
	if h.ParentBeaconRoot != nil {
		at := h.Time % ringLength
		err := f.write(params.BeaconRootsAddress, params.BeaconRootsCode,
			chain.SlotDiff{Slot: word(at), Value: word(h.Time)},
			chain.SlotDiff{Slot: word(at + ringLength), Value: *h.ParentBeaconRoot})
		if err != nil {
			return err
		}
	}
	if h.RequestsHash != nil && h.Number.Sign() > 0 {
		at := (h.Number.Uint64() - 1) % ringLength
		return f.write(params.HistoryStorageAddress, params.HistoryStorageCode, chain.SlotDiff{Slot: word(at), Value: h.ParentHash})
	}
	return nil
}

// write makes the changes that a system contract with known code makes.
func (f *fold) write(addr chain.Address, code []byte, slots ...chain.SlotDiff) error {
	a, err := f.account(addr)
	if err != nil {
		return err
	}
	switch a.now.CodeHash {
	case chain.Hash{}:
		return nil
	case crypto.Keccak256Hash(code):
		for _, s := range slots {
			a.slots[s.Slot] = s.Value
		}
		return nil
	}
	return fmt.Errorf("%w: system contract %s has other code than is known", ErrTrace, addr)
}

func word(n uint64) (w chain.Hash) {
	binary.BigEndian.PutUint64(w[24:], n)
	return w
}

// afterTransactions makes the changes that follow the last transaction.
func (f *fold) afterTransactions(b *Block, rules TraceRules) error {
	for _, w := range b.Withdrawals {
		a, err := f.account(w.Address)
		if err != nil {
			return err
		}
		amount := new(uint256.Int).Mul(uint256.NewInt(w.Amount), uint256.NewInt(params.GWei))
		a.now.Balance.Add(&a.now.Balance, amount)
	}
	if !rules.Requests || b.Header.RequestsHash == nil {
		return nil
	}
	for _, q := range requestQueues {
		if err := f.dequeue(q); err != nil {
			return err
		}
	}
	return nil
}

// requestQueue is a contract that collects requests to the consensus layer and
// hands some over at the end of each block.
type requestQueue struct {
	address      chain.Address
	target, most uint64 // requests of one block: above target the fee rises, most are handed over
}

var requestQueues = [...]requestQueue{
	{address: params.WithdrawalQueueAddress, target: 2, most: 16},
	{address: params.ConsolidationQueueAddress, target: 1, most: 2},
}

// dequeue does what the system call to a queue does, with its four numbers:
// excess, count, head and tail.
func (f *fold) dequeue(q requestQueue) error {
	a, err := f.account(q.address)
	if err != nil {
		return err
	}
	if a.now.CodeHash == (chain.Hash{}) {
		return nil
	}
	var n [4]uint256.Int
	for i := range n {
		value, err := f.slot(q.address, word(uint64(i)))
		if err != nil {
			return err
		}
		n[i].SetBytes(value[:])
	}
	excess, count, head, tail := &n[0], &n[1], &n[2], &n[3]
	if excess.Eq(new(uint256.Int).SetAllOne()) {
		excess.Clear() // what the contract begins with, until its first system call
	}
	excess.Add(excess, count)
	if target := uint256.NewInt(q.target); excess.Gt(target) {
		excess.Sub(excess, target)
	} else {
		excess.Clear()
	}
	count.Clear()
	if waiting := new(uint256.Int).Sub(tail, head); waiting.GtUint64(q.most) {
		head.AddUint64(head, q.most)
	} else {
		head.Clear()
		tail.Clear()
	}
	for i := range n {
		a.slots[word(uint64(i))] = n[i].Bytes32()
	}
	return nil
}
