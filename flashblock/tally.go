// SPDX-License-Identifier: Apache-2.0

package flashblock

import (
	"bytes"
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"

	"glimpse/chain"
)

// A Tally keeps the checksums of a block whose receipts come in parts: gas used,
// bloom and receipts root of all so far. Adding receipts costs time by their
// number, not by that of the receipts before, which is why the trie is kept. A
// Tally belongs to one goroutine. The zero value is not usable.
type Tally struct {
	GasUsed uint64
	Bloom   types.Bloom

	trie  *trie.Trie
	count int
}

// NewTally returns the Tally of a block without receipts.
func NewTally() *Tally {
	return &Tally{trie: trie.NewEmpty(nil)} // it is never committed, so it needs no database
}

// Add takes in the receipts that follow. Encoded has the same in the form that the
// root is made of, which for chains with receipts of their own is another one.
func (t *Tally) Add(receipts types.Receipts, encoded types.DerivableList) error {
	var key []byte
	var value bytes.Buffer
	for i, receipt := range receipts {
		key = rlp.AppendUint64(key[:0], uint64(t.count))
		value.Reset()
		encoded.EncodeIndex(i, &value)
		if err := t.trie.Update(key, bytes.Clone(value.Bytes())); err != nil {
			return fmt.Errorf("receipt %d: %w", t.count, err)
		}
		t.count++
		t.GasUsed = receipt.CumulativeGasUsed
		for j, b := range receipt.Bloom {
			t.Bloom[j] |= b
		}
	}
	return nil
}

// ReceiptsRoot returns the root of all receipts so far.
func (t *Tally) ReceiptsRoot() chain.Hash { return t.trie.Hash() }

// Check compares what d says about the block so far, and returns a
// *MismatchError about the first difference.
func (t *Tally) Check(d *Delta) error {
	switch root := t.ReceiptsRoot(); {
	case d.GasUsed != t.GasUsed:
		return &MismatchError{What: "gas used", Got: fmt.Sprint(t.GasUsed), Want: fmt.Sprint(d.GasUsed)}
	case d.ReceiptsRoot != root:
		return &MismatchError{What: "receipts root", Got: root.Hex(), Want: d.ReceiptsRoot.Hex()}
	case d.LogsBloom != t.Bloom:
		return &MismatchError{What: "logs bloom", Got: fmt.Sprintf("%x", t.Bloom), Want: fmt.Sprintf("%x", d.LogsBloom)}
	}
	return nil
}

// A MismatchError says that executing a flashblock gave something else than the
// sequencer announced.
type MismatchError struct {
	What      string
	Got, Want string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s is %s, the sequencer says %s", e.What, e.Got, e.Want)
}
