// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/archive"
	"glimpse/chain"
	"glimpse/evm"
	"glimpse/flashblock"
	"glimpse/pending"
)

// executor lets pending execute flashblocks by the rules of the chain.
type executor struct {
	rules *evm.Rules
	known *knownTransactions // whose senders are known; nil where none are
	ahead *ahead             // nil where all state is here
}

var _ pending.Executor = executor{}

// Complete implements pending.Executor.
func (x executor) Complete(header, parent *types.Header) {
	config := x.rules.Config()
	if !config.IsCancun(header.Number, header.Time) {
		header.ParentBeaconRoot, header.ExcessBlobGas, header.BlobGasUsed = nil, nil, nil
		return
	}
	excess := eip4844.CalcExcessBlobGas(config, parent, header.Time)
	header.ExcessBlobGas = &excess
}

// Begin implements pending.Executor.
func (x executor) Begin(header, _ *types.Header, base chain.View, ancestors func(chain.Number) (chain.Hash, error)) (pending.Execution, error) {
	block, err := x.rules.Begin(header, base, ancestors)
	if err != nil {
		return nil, err
	}
	return execution{block, x.rules.Signer(header), x.known, x.ahead}, nil
}

// Commits implements pending.Executor.
func (x executor) Commits(h *types.Header, w types.Withdrawals) bool { return evm.CommitsTo(h, w) }

// Transient implements pending.Executor.
func (x executor) Transient(err error) bool { return errors.Is(err, evm.ErrStateRead) }

type execution struct {
	block  *evm.Block
	signer types.Signer
	known  *knownTransactions
	ahead  *ahead
}

// Apply implements pending.Execution. Recovering senders is most of the work, and
// can use all cores.
func (e execution) Apply(m *flashblock.Message, _ chain.View) (*pending.Piece, error) {
	raw := m.Delta.Transactions
	done := &pending.Piece{Hashes: make([]chain.Hash, len(raw)), Transactions: make([]*types.Transaction, len(raw))}
	for i, data := range raw {
		tx := new(types.Transaction)
		if err := tx.UnmarshalBinary(data); err != nil {
			return nil, fmt.Errorf("transaction %d: %w", i, err)
		}
		done.Hashes[i], done.Transactions[i] = tx.Hash(), e.known.find(tx)
	}
	evm.RecoverSenders(e.signer, done.Transactions)
	e.ahead.transactions(e.signer, done.Transactions)
	var err error
	done.Diff, done.Receipts, err = e.block.Apply(done.Transactions)
	done.Encoded = done.Receipts
	return done, err
}

// knownTransactions are those of the last flashblock that this process made. What
// comes back over the feed is the same, and its senders need not be recovered.
type knownTransactions struct {
	last atomic.Pointer[map[chain.Hash]*types.Transaction]
}

func (k *knownTransactions) remember(txs []*types.Transaction) {
	last := make(map[chain.Hash]*types.Transaction, len(txs))
	for _, tx := range txs {
		last[tx.Hash()] = tx
	}
	k.last.Store(&last)
}

// find returns what is known of a transaction, or itself.
func (k *knownTransactions) find(tx *types.Transaction) *types.Transaction {
	if k == nil {
		return tx
	}
	if last := k.last.Load(); last != nil {
		if known := (*last)[tx.Hash()]; known != nil {
			return known
		}
	}
	return tx
}

func (e execution) Finish(body *types.Body) (*chain.Diff, error) {
	diff, _, err := e.block.Finish(body)
	return diff, err
}

func (e execution) Diff() (*chain.Diff, error) { return e.block.Diff() }

// sealedState is the newest sealed block as pending sees it.
type sealedState struct {
	*archive.Reader
	view   chain.View
	header *types.Header
}

var _ pending.Sealed = (*sealedState)(nil)

// newSealedState takes over a reference to the reader.
func newSealedState(r *archive.Reader, how reading) (*sealedState, error) {
	n := r.Head().Number
	header, err := headerAt(r, n)
	if err != nil {
		return nil, err
	}
	view, err := how.view(r, n)
	if err != nil {
		return nil, err
	}
	return &sealedState{r, view, header}, nil
}

func (s *sealedState) Header() *types.Header { return s.header }
func (s *sealedState) View() chain.View      { return s.view }
