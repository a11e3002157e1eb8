// SPDX-License-Identifier: Apache-2.0

package opstack

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"

	"glimpse/chain"
	"glimpse/evm"
)

// The types of transactions that Ethereum does not have.
const (
	DepositType       = 0x7e
	PostExecutionType = 0x7d
)

// A Transaction is one in a block of an OP-Stack chain: a deposit, one that is
// signed, or one that follows the others with what the sequencer has to say
// about them. It is immutable.
type Transaction struct {
	raw  []byte
	hash chain.Hash

	// One of these is set.
	deposit *Deposit
	signed  *types.Transaction
	refunds *refunds
}

// A Deposit is a transaction that was made on the chain below, or that the
// protocol makes there in nobody's name. It has no signature and no gas price.
type Deposit struct {
	SourceHash chain.Hash
	From       chain.Address
	To         *chain.Address `rlp:"nil"`       // nil creates a contract
	Mint       *uint256.Int   `rlp:"nilString"` // added to From's balance whatever becomes of the rest; nil for none
	Value      *uint256.Int
	Gas        uint64
	System     bool // refused since Regolith
	Data       []byte
}

// DecodeTransaction reads the binary encoding of a transaction, which is kept
// and must not be modified. A type that is not known gives evm.ErrUnsupported.
func DecodeTransaction(raw []byte) (*Transaction, error) {
	tx := &Transaction{raw: raw, hash: crypto.Keccak256Hash(raw)}
	var err error
	switch kind := typeOf(raw); kind {
	case DepositType:
		tx.deposit = new(Deposit)
		err = rlp.DecodeBytes(raw[1:], tx.deposit)
	case PostExecutionType:
		tx.refunds, err = decodeRefunds(raw[1:])
	default:
		tx.signed = new(types.Transaction)
		err = tx.signed.UnmarshalBinary(raw)
	}
	switch {
	case errors.Is(err, types.ErrTxTypeNotSupported):
		return nil, fmt.Errorf("%w: transaction of type %#x", evm.ErrUnsupported, typeOf(raw))
	case err != nil:
		return nil, fmt.Errorf("decode transaction: %w", err)
	}
	return tx, nil
}

// typeOf returns the type that an encoding begins with, 0 for a legacy one.
func typeOf(raw []byte) byte {
	if len(raw) == 0 || raw[0] > 0x7f {
		return types.LegacyTxType
	}
	return raw[0]
}

// DecodeTransactions reads the transactions of a block or of a flashblock.
func DecodeTransactions(raw [][]byte) ([]*Transaction, error) {
	txs := make([]*Transaction, len(raw))
	for i, data := range raw {
		var err error
		if txs[i], err = DecodeTransaction(data); err != nil {
			return nil, fmt.Errorf("transaction %d: %w", i, err)
		}
	}
	return txs, nil
}

// NewDeposit returns d as a Transaction; d must not be modified afterwards.
func NewDeposit(d *Deposit) (*Transaction, error) {
	fields, err := rlp.EncodeToBytes(d)
	if err != nil {
		return nil, fmt.Errorf("encode deposit: %w", err)
	}
	raw := append([]byte{DepositType}, fields...)
	return &Transaction{raw: raw, hash: crypto.Keccak256Hash(raw), deposit: d}, nil
}

// NewSigned returns a transaction that Ethereum has too.
func NewSigned(tx *types.Transaction) (*Transaction, error) {
	raw, err := tx.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("encode transaction: %w", err)
	}
	return &Transaction{raw: raw, hash: tx.Hash(), signed: tx}, nil
}

// Type returns the number of the transaction's type.
func (t *Transaction) Type() byte { return typeOf(t.raw) }

// Hash returns the hash that the transaction is known by.
func (t *Transaction) Hash() chain.Hash { return t.hash }

// Raw returns the binary encoding, which must not be modified.
func (t *Transaction) Raw() []byte { return t.raw }

// Deposit returns the deposit, or false where it is none. It must not be
// modified.
func (t *Transaction) Deposit() (*Deposit, bool) { return t.deposit, t.deposit != nil }

// Signed returns the transaction as Ethereum has it, or false for those that it
// does not have. It must not be modified.
func (t *Transaction) Signed() (*types.Transaction, bool) { return t.signed, t.signed != nil }

// Transactions are those of a block in their order; types.DeriveSha gives their
// root.
type Transactions []*Transaction

// Len implements types.DerivableList.
func (t Transactions) Len() int { return len(t) }

// EncodeIndex implements types.DerivableList.
func (t Transactions) EncodeIndex(i int, w *bytes.Buffer) { w.Write(t[i].raw) }
