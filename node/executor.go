// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"

	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/archive"
	"glimpse/chain"
	"glimpse/evm"
	"glimpse/pending"
)

// executor lets pending execute flashblocks by the rules of the chain.
type executor struct{ rules *evm.Rules }

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
	return execution{block, x.rules.Signer(header)}, nil
}

// Transient implements pending.Executor.
func (x executor) Transient(err error) bool { return errors.Is(err, evm.ErrStateRead) }

type execution struct {
	block  *evm.Block
	signer types.Signer
}

// Apply implements pending.Execution. Recovering senders is most of the work, and
// can use all cores.
func (e execution) Apply(txs []*types.Transaction) (*chain.Diff, types.Receipts, error) {
	evm.RecoverSenders(e.signer, txs)
	return e.block.Apply(txs)
}

func (e execution) Finish(body *types.Body) (*chain.Diff, error) {
	diff, _, err := e.block.Finish(body)
	return diff, err
}

// sealedState is the newest sealed block as pending sees it.
type sealedState struct {
	*archive.Reader
	view   archive.View
	header *types.Header
}

var _ pending.Sealed = (*sealedState)(nil)

// newSealedState takes over a reference to the reader.
func newSealedState(r *archive.Reader) (*sealedState, error) {
	n := r.Head().Number
	header, err := headerAt(r, n)
	if err != nil {
		return nil, err
	}
	view, err := r.At(n)
	if err != nil {
		return nil, err
	}
	return &sealedState{r, view, header}, nil
}

func (s *sealedState) Header() *types.Header { return s.header }
func (s *sealedState) View() chain.View      { return s.view }
