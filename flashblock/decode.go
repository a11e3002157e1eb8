// SPDX-License-Identifier: Apache-2.0

package flashblock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/holiman/uint256"

	"glimpse/chain"
)

// MaxSize is the longest message that is decoded, in bytes of JSON. Busy blocks
// with their receipts come to a few megabytes.
const MaxSize = 32 << 20

// A feed is not trusted with our memory. A compressed message may be this many
// times longer than it came, beyond a first part that anything may have: real
// ones are about three times, and far more only where they carry long runs.
const (
	maxInflation  = 1000
	freeInflation = 4 << 20
)

// maxElements bounds what the parts of a message may number: in memory one takes
// dozens of bytes though it can be written in two. Every part of a real message
// is longer in text than in memory.
const maxElements = MaxSize / 64

// ErrMessage is wrapped by every error of Decode.
var ErrMessage = errors.New("malformed flashblock")

// ErrEnd is the error of Decode for a message that only says that no more pieces
// of a build follow. Some feeds send it; nothing depends on it. It wraps
// ErrMessage.
var ErrEnd = fmt.Errorf("%w: the end of a build", ErrMessage)

// Decode reads a message as it came from a feed, as JSON or as JSON compressed
// with Brotli; which of the two is seen from its content, because feeds say it
// in different ways or not at all. Members that are not known are ignored, and
// most that are missing or null are zero: not all feeds send all. The result
// shares no memory with data.
func Decode(data []byte) (*Message, error) {
	m, _, err := decode(data, (*wireMetadata).fill)
	return m, err
}

// DecodeState is Decode without receipts and balances, which say what followers
// find out themselves and are most of a message.
func DecodeState(data []byte) (*Message, error) {
	m, _, err := decode(data, func(*wireMetadata, *Message) {})
	return m, err
}

// DecodeWithText is Decode, but the Message also keeps the text that it was
// decoded from, see Message.Text.
func DecodeWithText(data []byte) (*Message, error) {
	m, text, err := decode(data, (*wireMetadata).fill)
	if err != nil {
		return nil, err
	}
	m.text = bytes.Clone(text)
	return m, nil
}

// decode also returns the text, which may be data itself. Fill is called for what
// does not decide the state.
func decode(data []byte, fill func(*wireMetadata, *Message)) (*Message, []byte, error) {
	text := data
	if !isJSON(text) {
		var err error
		if text, err = inflate(data); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case len(text) > MaxSize:
		return nil, nil, fmt.Errorf("%w: %d bytes, at most %d", ErrMessage, len(text), MaxSize)
	case bytes.Count(text, []byte{','}) > maxElements:
		return nil, nil, fmt.Errorf("%w: more than %d elements", ErrMessage, maxElements)
	}
	var w wireMessage
	if err := json.Unmarshal(text, &w); err != nil {
		// Its text repeats what was found, which may be megabytes.
		return nil, nil, fmt.Errorf("%w: %.200s", ErrMessage, err.Error())
	}
	if w.isEnd() {
		return nil, nil, ErrEnd
	}
	m, err := w.message()
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	fill(&w.Metadata, m)
	m.size = len(text)
	return m, text, nil
}

func isJSON(data []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte{'{'})
}

func inflate(data []byte) ([]byte, error) {
	most := min(MaxSize, freeInflation+maxInflation*len(data))
	text, err := io.ReadAll(io.LimitReader(brotli.NewReader(bytes.NewReader(data)), int64(most)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: neither JSON nor Brotli: %w", ErrMessage, err)
	case len(text) > most:
		return nil, fmt.Errorf("%w: %d bytes inflate to more than %d", ErrMessage, len(data), most)
	}
	return text, nil
}

func (w *wireMessage) isEnd() bool {
	return w.PayloadID != nil && w.Index == nil && w.Base == nil && w.Diff == nil && w.Metadata.BlockNumber == nil
}

func (w *wireMessage) message() (*Message, error) {
	m := new(Message)
	switch {
	case len(or(w.PayloadID)) != len(m.Payload):
		return nil, fmt.Errorf("payload id of %d bytes", len(or(w.PayloadID)))
	case w.Index == nil:
		return nil, errors.New("no index")
	case w.Diff == nil:
		return nil, errors.New("no diff")
	case *w.Index == 0 && w.Base == nil:
		return nil, errors.New("no base at index 0")
	case w.Base == nil && w.Metadata.BlockNumber == nil:
		return nil, errors.New("no block number")
	}
	copy(m.Payload[:], *w.PayloadID)
	m.Index = *w.Index
	if w.Metadata.BlockNumber != nil {
		m.Number = chain.Number(*w.Metadata.BlockNumber)
	}
	// A base after index 0 repeats what is known; nothing may depend on it.
	if m.Index == 0 {
		if err := w.base(m); err != nil {
			return nil, err
		}
	} else if w.Metadata.BlockNumber == nil {
		m.Number = chain.Number(or(w.Base.BlockNumber))
	}
	if m.Number == 0 || m.Number > chain.MaxNumber {
		return nil, fmt.Errorf("block number %d", m.Number)
	}
	if err := w.Diff.delta(&m.Delta); err != nil {
		return nil, err
	}
	m.AccessList = w.accessList()
	return m, nil
}

func (w *wireMessage) base(m *Message) error {
	b := w.Base
	number := chain.Number(or(b.BlockNumber))
	switch {
	case b.ParentHash == nil:
		return errors.New("no parent hash")
	case w.Metadata.BlockNumber != nil && m.Number != number:
		return fmt.Errorf("block number %d in base and %d in metadata", number, m.Number)
	}
	m.Number = number
	m.Base = &Base{
		ParentHash:       *b.ParentHash,
		ParentBeaconRoot: or(b.ParentBeaconBlockRoot),
		FeeRecipient:     or(b.FeeRecipient),
		PrevRandao:       or(b.PrevRandao),
		GasLimit:         uint64(or(b.GasLimit)),
		Time:             uint64(or(b.Timestamp)),
		ExtraData:        or(b.ExtraData),
		BaseFee:          new(uint256.Int),
	}
	if b.BaseFeePerGas != nil {
		m.Base.BaseFee = (*uint256.Int)(b.BaseFeePerGas)
	}
	return nil
}

func (w *wireDiff) delta(d *Delta) error {
	*d = Delta{
		GasUsed:         uint64(or(w.GasUsed)),
		ReceiptsRoot:    or(w.ReceiptsRoot),
		LogsBloom:       or(w.LogsBloom),
		StateRoot:       or(w.StateRoot),
		BlockHash:       or(w.BlockHash),
		WithdrawalsRoot: or(w.WithdrawalsRoot),
		BlobGasUsed:     (*uint64)(w.BlobGasUsed),
		PostExecution:   or(w.PostExecTx),
	}
	for i, tx := range w.Transactions {
		if len(tx) == 0 {
			return fmt.Errorf("transaction %d is empty", i)
		}
		d.Transactions = append(d.Transactions, tx)
	}
	for i, withdrawal := range w.Withdrawals {
		if withdrawal == nil {
			return fmt.Errorf("withdrawal %d is null", i)
		}
		d.Withdrawals = append(d.Withdrawals, withdrawal)
	}
	return nil
}

func (w *wireMetadata) fill(m *Message) {
	if balances := w.NewAccountBalances.read(); len(balances) > 0 {
		m.Balances = make(map[chain.Address]*uint256.Int, len(balances))
		for addr, balance := range balances {
			if balance != nil {
				m.Balances[addr] = (*uint256.Int)(balance)
			}
		}
	}
	if receipts := w.Receipts.read(); len(receipts) > 0 {
		m.Receipts = make(map[chain.Hash]*Receipt, len(receipts))
		for hash, r := range receipts {
			if receipt := r.read(); receipt != nil {
				m.Receipts[hash] = receipt.receipt()
			}
		}
	}
}

func (r *wireReceipt) receipt() *Receipt {
	out := &Receipt{
		Type:              uint8(or(r.Type)),
		Succeeded:         bool(r.Status),
		CumulativeGasUsed: uint64(or(r.CumulativeGasUsed)),
		DepositNonce:      (*uint64)(r.DepositNonce),
		DepositVersion:    (*uint64)(r.DepositReceiptVersion),
	}
	for _, l := range r.Logs {
		out.Logs = append(out.Logs, Log{Address: or(l.Address), Topics: l.Topics, Data: or(l.Data)})
	}
	return out
}
