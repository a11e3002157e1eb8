// SPDX-License-Identifier: Apache-2.0

package opstack_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"

	"glimpse/chain"
	"glimpse/evm"
	"glimpse/evm/opstack"
	"glimpse/flashblock"
	"glimpse/pending"
)

// An executor is the rules as pending knows them.
type executor struct{ rules *opstack.Rules }

func (x executor) Complete(header, _ *types.Header) { x.rules.Complete(header) }
func (x executor) Transient(err error) bool         { return errors.Is(err, evm.ErrStateRead) }

func (x executor) Commits(_ *types.Header, w types.Withdrawals) bool { return len(w) == 0 }

func (x executor) Begin(header, _ *types.Header, base chain.View, ancestors func(chain.Number) (chain.Hash, error)) (pending.Execution, error) {
	b, err := x.rules.Begin(header, base, ancestors)
	return execution{b}, err
}

type execution struct{ *opstack.Block }

func (e execution) Apply(m *flashblock.Message, _ chain.View) (*pending.Piece, error) {
	txs, err := opstack.DecodeTransactions(m.Delta.Transactions)
	if err != nil {
		return nil, err
	}
	diff, receipts, err := e.Block.Apply(txs)
	if err != nil {
		return nil, err
	}
	p := &pending.Piece{Diff: diff, Receipts: receipts.Common(), Encoded: receipts}
	for _, tx := range txs {
		p.Hashes = append(p.Hashes, tx.Hash())
	}
	return p, nil
}

func (e execution) Finish(*types.Body) (*chain.Diff, error) {
	diff, _, err := e.Block.Finish()
	return diff, err
}

// sealed is a replay as the newest sealed block.
type sealed struct{ *replay }

func (s sealed) Head() chain.Ref {
	return chain.Ref{Number: chain.Number(s.head.Number.Uint64()), Hash: s.head.Hash()}
}
func (s sealed) Header() *types.Header                   { return s.head }
func (s sealed) View() chain.View                        { return s.state }
func (s sealed) Hash(n chain.Number) (chain.Hash, error) { return s.hashes[n], nil }
func (s sealed) Release()                                {}

// inFlashblocks cuts a block into flashblocks of four transactions, with the
// checksums that a sequencer sends along.
func inFlashblocks(t *testing.T, r *replay, header *types.Header, txs []*opstack.Transaction) (messages []*flashblock.Message) {
	t.Helper()
	b, err := r.rules.Begin(header, r.state, r.ancestors)
	if err != nil {
		t.Fatal(err)
	}
	tally := flashblock.NewTally()
	for index := uint64(0); len(txs) > 0; index++ {
		part := txs[:min(4, len(txs))]
		txs = txs[len(part):]
		_, receipts, err := b.Apply(part)
		if err == nil {
			err = tally.Add(receipts.Common(), receipts)
		}
		if err != nil {
			t.Fatal(err)
		}
		m := &flashblock.Message{Payload: flashblock.PayloadID{3}, Index: index, Number: chain.Number(header.Number.Uint64())}
		m.Delta.GasUsed, m.Delta.ReceiptsRoot, m.Delta.LogsBloom = tally.GasUsed, tally.ReceiptsRoot(), tally.Bloom
		for _, tx := range part {
			m.Delta.Transactions = append(m.Delta.Transactions, tx.Raw())
		}
		if footprint := b.Outcome().Footprint; header.BlobGasUsed != nil {
			m.Delta.BlobGasUsed = &footprint
		}
		if index == 0 {
			m.Base = &flashblock.Base{
				ParentHash: header.ParentHash, FeeRecipient: header.Coinbase, PrevRandao: header.MixDigest, GasLimit: header.GasLimit,
				Time: header.Time, ExtraData: header.Extra, BaseFee: uint256.MustFromBig(header.BaseFee),
			}
			if header.ParentBeaconRoot != nil {
				m.Base.ParentBeaconRoot = *header.ParentBeaconRoot
			}
		}
		messages = append(messages, m)
	}
	return messages
}

// Blocks of every fork that op-geth built, pre-confirmed piece by piece: pending
// shows what executing them gives, and a block that is sealed so is promoted.
func TestFlashblocksOfEveryFork(t *testing.T) {
	for name, first := range forkBlocks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, header, txs := at(t, int(first)+2)
			whole, err := r.rules.Execute(header, txs, r.head, r.state, r.ancestors, evm.Checks{Receipts: true})
			if err != nil {
				t.Fatal(err)
			}
			tracker := pending.NewTracker(executor{r.rules}, sealed{r}, pending.Options{})
			defer tracker.Close()
			for _, m := range inFlashblocks(t, r, header, txs) {
				events := tracker.Flashblock(m)
				if len(events) != 1 || events[0].Kind != pending.Applied {
					t.Fatalf("flashblock %d: %+v", m.Index, events)
				}
			}
			after := tracker.Overlay().On(r.state)
			for _, a := range whole.Diff.Accounts {
				if got, err := after.Account(a.Address); err != nil || a.Changed && got != a.Account {
					t.Errorf("account %s is %+v (%v), want %+v", a.Address, got, err, a.Account)
				}
				for _, s := range a.Slots {
					if got, err := after.Slot(a.Address, s.Slot); err != nil || got != s.Value {
						t.Errorf("slot %s of %s is %s (%v), want %s", s.Slot, a.Address, got, err, s.Value)
					}
				}
			}
			done, ok, err := tracker.Promised(header)
			if err != nil || !ok || !reflect.DeepEqual(done.Diff, whole.Diff) {
				t.Errorf("the sealed block is promised: %v (%v)", ok, err)
			}
		})
	}
}
