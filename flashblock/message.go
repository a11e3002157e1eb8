// SPDX-License-Identifier: Apache-2.0

package flashblock

import (
	"encoding/hex"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"

	"glimpse/chain"
)

// A PayloadID names one build of a block. A sequencer that starts a block over
// gives it another one.
type PayloadID [8]byte

// String returns the id in hex with its prefix.
func (id PayloadID) String() string { return "0x" + hex.EncodeToString(id[:]) }

// A Message is one flashblock. It must not be modified once it was handed on.
type Message struct {
	Payload PayloadID
	Index   uint64
	Number  chain.Number // of the block that it is a piece of

	// Base is what the block stands on; nil in all but index 0.
	Base *Base

	Delta Delta

	// Balances and Receipts are what this piece changed, as the sequencer tells
	// it. Some feeds leave them out, and glimpse believes only what it executes.
	Balances map[chain.Address]*uint256.Int
	Receipts map[chain.Hash]*Receipt

	// AccessList is what the transactions of this piece wrote, as the
	// sequencer tells it; nil where the feed does not, or in a form that is
	// not known.
	AccessList *AccessList

	text []byte // what it was decoded from, where that is kept
	size int    // bytes of the text it was decoded from, 0 where it was not
}

// Text returns the JSON that m was decoded from, all members of it, and whether
// that was kept. It must not be modified.
func (m *Message) Text() ([]byte, bool) { return m.text, m.text != nil }

// A Base is what is fixed when the building of a block begins.
type Base struct {
	ParentHash       chain.Hash
	ParentBeaconRoot chain.Hash
	FeeRecipient     chain.Address
	PrevRandao       chain.Hash
	GasLimit         uint64
	Time             uint64
	ExtraData        []byte
	BaseFee          *uint256.Int // never nil
}

// A Delta is what one piece adds to its block. All but the transactions is of
// the block so far, this piece included.
type Delta struct {
	// Transactions are those of this piece only, in their binary encoding and
	// of whatever type: what cannot be decoded here is not left out.
	Transactions [][]byte

	GasUsed      uint64
	ReceiptsRoot chain.Hash
	LogsBloom    types.Bloom

	// StateRoot and BlockHash are zero in feeds whose sequencer computes them
	// only when it seals.
	StateRoot chain.Hash
	BlockHash chain.Hash

	Withdrawals     []*types.Withdrawal
	WithdrawalsRoot chain.Hash
	BlobGasUsed     *uint64 // nil where the feed does not say

	// PostExecution is a transaction that follows all others of the block; it
	// takes the place of the one in the piece before. Empty where there is none.
	PostExecution []byte
}

// A Receipt is a transaction's receipt as feeds carry it.
type Receipt struct {
	Type              uint8
	Succeeded         bool
	CumulativeGasUsed uint64
	Logs              []Log

	// DepositNonce and DepositVersion are of deposits on OP-Stack chains, nil
	// in other receipts.
	DepositNonce   *uint64
	DepositVersion *uint64
}

// A Log is an event in a Receipt.
type Log struct {
	Address chain.Address
	Topics  []chain.Hash
	Data    []byte
}

// leastSize is what a Message takes beside its transactions, roughly.
const leastSize = 1024

// Size returns about how many bytes of memory m takes, for bounds.
func (m *Message) Size() int {
	size := m.size + len(m.text) + leastSize
	if m.size == 0 {
		for _, tx := range m.Delta.Transactions {
			size += len(tx)
		}
	}
	return size
}

// Parent returns the hash of the block below, and whether m says it: only index
// 0 does.
func (m *Message) Parent() (chain.Hash, bool) {
	if m.Base == nil {
		return chain.Hash{}, false
	}
	return m.Base.ParentHash, true
}
