// SPDX-License-Identifier: Apache-2.0

package flashblock

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// A Fingerprint tells the contents of flashblocks apart.
type Fingerprint [sha256.Size]byte

// Fingerprint returns that of all in m that decides what state it makes: its
// place, Base and Delta. What feeds leave out or add as they like, receipts,
// balances and access lists, is not in it, so that one flashblock has one
// fingerprint whichever feed it came from.
func (m *Message) Fingerprint() (f Fingerprint) {
	p := printer{sha256.New()}
	p.bytes(m.Payload[:])
	p.numbers(m.Index, uint64(m.Number))
	if b := m.Base; b != nil {
		p.bytes(b.ParentHash[:], b.ParentBeaconRoot[:], b.FeeRecipient[:], b.PrevRandao[:], b.ExtraData)
		p.numbers(b.GasLimit, b.Time)
		fee := b.BaseFee.Bytes32()
		p.bytes(fee[:])
	}
	d := &m.Delta
	p.numbers(d.GasUsed, uint64(len(d.Transactions)))
	p.bytes(d.Transactions...)
	p.bytes(d.ReceiptsRoot[:], d.LogsBloom[:], d.StateRoot[:], d.BlockHash[:], d.WithdrawalsRoot[:], d.PostExecution)
	p.numbers(uint64(len(d.Withdrawals)))
	for _, w := range d.Withdrawals {
		p.numbers(w.Index, w.Validator, w.Amount)
		p.bytes(w.Address[:])
	}
	if d.BlobGasUsed != nil {
		p.numbers(*d.BlobGasUsed)
	}
	p.Sum(f[:0])
	return f
}

// A printer writes each part with its length, so that no two lists of parts look
// alike.
type printer struct{ hash.Hash }

func (p printer) numbers(all ...uint64) {
	for _, n := range all {
		var buf [8]byte
		binary.BigEndian.PutUint64(buf[:], n)
		p.Write(buf[:])
	}
}

func (p printer) bytes(all ...[]byte) {
	for _, data := range all {
		p.numbers(uint64(len(data)))
		p.Write(data)
	}
}
