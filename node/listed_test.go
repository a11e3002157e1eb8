// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"

	"glimpse/chain"
	"glimpse/flashblock"
	"glimpse/internal/memview"
	"glimpse/pending"
	"glimpse/replica"
)

// A parent is a sealed block for pending to stand on. While broken is set nothing
// can be read.
type parent struct {
	*memview.State
	header *types.Header
	broken error
}

func (p *parent) Head() chain.Ref       { return chain.Ref{Number: 6, Hash: p.header.Hash()} }
func (p *parent) Header() *types.Header { return p.header }
func (p *parent) View() chain.View      { return p }
func (p *parent) Hash(chain.Number) (chain.Hash, error) {
	return chain.Hash{}, errors.New("not asked for")
}
func (p *parent) Release() {}
func (p *parent) Account(a chain.Address) (chain.Account, error) {
	if p.broken != nil {
		return chain.Account{}, p.broken
	}
	return p.State.Account(a)
}

var listedAccount = chain.Address{19: 0xbb}

// listedPiece is a flashblock of one transaction with a list that sets slot 1.
func listedPiece(p *parent, index uint64, list *flashblock.AccessList) *flashblock.Message {
	m := &flashblock.Message{Payload: flashblock.PayloadID{1}, Index: index, Number: 7, AccessList: list}
	m.Delta.Transactions = [][]byte{{0x7e, byte(index)}}
	m.Delta.GasUsed = 21000 * (index + 1)
	if index == 0 {
		m.Base = &flashblock.Base{ParentHash: p.header.Hash(), Time: 8, GasLimit: 30_000_000, BaseFee: new(uint256.Int)}
	}
	return m
}

func slotList(value int, hash chain.Hash) *flashblock.AccessList {
	text := fmt.Sprintf(`{"changes":[{"address":"%s","storage_changes":[{"slot":"0x1","changes":[{"block_access_index":1,"new_value":"%#x"}]}]}],"min_tx_index":0,"max_tx_index":0}`, listedAccount, value)
	return &flashblock.AccessList{Text: json.RawMessage(text), Hash: hash}
}

// Flashblocks of a chain whose rules are not known are taken from the lists that
// they carry.
func TestListedFlashblocks(t *testing.T) {
	p := &parent{State: memview.New(), header: &types.Header{Number: uint256.NewInt(6).ToBig()}}
	tracker := pending.NewTracker(listed{}, p, pending.Options{})
	defer tracker.Close()
	slot := func() byte {
		value, err := tracker.Overlay().On(p).Slot(listedAccount, chain.Slot{31: 1})
		if err != nil {
			t.Fatal(err)
		}
		return value[31]
	}
	for _, step := range []struct {
		name   string
		m      *flashblock.Message
		broken error
		kind   pending.Kind
		want   byte
	}{
		{"the first", listedPiece(p, 0, slotList(7, chain.Hash{})), nil, pending.Applied, 7},
		{"the next, on what the first did", listedPiece(p, 1, slotList(0, chain.Hash{})), nil, pending.Applied, 0},
		{"one with values again", listedPiece(p, 2, slotList(9, chain.Hash{})), nil, pending.Applied, 9},
		{"one whose hash is another", listedPiece(p, 3, slotList(8, chain.Hash{1})), nil, pending.Invalid, 0},
	} {
		p.broken = step.broken
		events := tracker.Flashblock(step.m)
		if len(events) != 1 || events[0].Kind != step.kind {
			t.Fatalf("%s: %+v, want %v", step.name, events, step.kind)
		}
		if got := slot(); got != step.want {
			t.Errorf("%s: slot is %d, want %d", step.name, got, step.want)
		}
	}
}

func TestListedFlashblocksThatAreNotApplied(t *testing.T) {
	for _, tt := range []struct {
		name   string
		list   *flashblock.AccessList
		broken error
		kind   pending.Kind
	}{
		{"no list", nil, nil, pending.Invalid},
		{"a list that is none", &flashblock.AccessList{Text: json.RawMessage(`"0xc1c1"`)}, nil, pending.Invalid},
		{"a state that cannot be read", slotList(7, chain.Hash{}), errors.New("away"), pending.Unread},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &parent{State: memview.New(), header: &types.Header{Number: uint256.NewInt(6).ToBig()}, broken: tt.broken}
			tracker := pending.NewTracker(listed{}, p, pending.Options{})
			defer tracker.Close()
			events := tracker.Flashblock(listedPiece(p, 0, tt.list))
			if len(events) != 1 || events[0].Kind != tt.kind {
				t.Errorf("%+v, want %v", events, tt.kind)
			}
		})
	}
}

// The sealed block is never taken from what a feed said of it.
func TestListedBlocksAreNotPromised(t *testing.T) {
	p := &parent{State: memview.New(), header: &types.Header{Number: uint256.NewInt(6).ToBig()}}
	tracker := pending.NewTracker(listed{}, p, pending.Options{})
	defer tracker.Close()
	tracker.Flashblock(listedPiece(p, 0, slotList(7, chain.Hash{})))
	shown, ok := tracker.Overlay().Preconfirmed()
	if !ok || shown.Header.GasUsed != 21000 || len(shown.Hashes) != 1 || shown.Transactions != nil {
		t.Fatalf("pre-confirmed %+v", shown)
	}
	h := types.CopyHeader(shown.Header)
	h.TxHash = flashblock.TransactionsRoot([][]byte{{0x7e, 0}})
	if _, ok, err := tracker.Promised(h); ok || err != nil {
		t.Errorf("it is promised (%v)", err)
	}
}

// A replica answers of such a block as its writer does: it has the same of it, and no
// more.
func TestListedBlocksOnReplicas(t *testing.T) {
	p := &parent{State: memview.New(), header: &types.Header{Number: uint256.NewInt(6).ToBig()}}
	tracker := pending.NewTracker(listed{}, p, pending.Options{})
	defer tracker.Close()
	var before *replica.Overlay
	for index := range uint64(3) {
		tracker.Flashblock(listedPiece(p, index, slotList(int(index)+7, chain.Hash{})))
		told := overlayForReplicas(p.Head(), tracker.Overlay())
		if before != nil {
			if parts, ok := told.PartsSince(before); !ok || len(parts) != 1 || len(parts[0].Layers) != 1 {
				t.Errorf("flashblock %d is told as %+v, want what it added", index, parts)
			}
		}
		before = told
		event, err := replica.AppendEvent(nil, &replica.Event{Body: &replica.Pending{Parent: told.Parent, Blocks: told.Parts()}})
		if err != nil {
			t.Fatal(err)
		}
		heard, err := replica.DecodeEvent(event)
		if err != nil {
			t.Fatal(err)
		}
		part := heard.Body.(*replica.Pending).Blocks[0]
		shown, err := overlayOfReplica(&replica.Overlay{Parent: told.Parent, Blocks: []replica.OverlayBlock{{
			Block:  &chain.Preconfirmed{Header: part.Header, Index: part.Index, Hashes: part.Hashes, Transactions: part.Transactions, Receipts: part.Receipts},
			Layers: part.Layers,
		}}})
		if err != nil {
			t.Fatal(err)
		}
		got, _ := shown.Preconfirmed()
		want, _ := tracker.Overlay().Preconfirmed()
		if got.Header.Hash() != want.Header.Hash() || got.Index != want.Index || !reflect.DeepEqual(got.Hashes, want.Hashes) ||
			(got.Transactions == nil) != (want.Transactions == nil) || (got.Receipts == nil) != (want.Receipts == nil) {
			t.Errorf("a replica has %+v, want %+v", got, want)
		}
		if value, ok := shown.Slot(listedAccount, chain.Slot{31: 1}); !ok || value[31] != byte(index)+7 {
			t.Errorf("slot is %d, %v, want %d", value[31], ok, index+7)
		}
	}
}
