// SPDX-License-Identifier: Apache-2.0

package head_test

import (
	"errors"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/head"
)

// fakeOverlay changes slot 1 of address 1 alone, but lists what it is told.
type fakeOverlay struct {
	parent chain.Ref
	empty  bool
	index  uint64 // of its flashblock, where not 3

	slots []chain.SlotDiff
	wiped bool
}

var (
	changedAddress = chain.Address{1}
	changedSlot    = chain.Slot{1}
	changedValue   = chain.Value{0xff}
	changedCode    = chain.NewCode([]byte{1, 2, 3})
	preconfirmedTx = chain.Hash{7}
)

func (o *fakeOverlay) block() *chain.Preconfirmed {
	index := o.index
	if index == 0 {
		index = 3
	}
	return &chain.Preconfirmed{Header: &types.Header{Number: new(big.Int).SetUint64(uint64(o.parent.Number) + 1)}, Index: index}
}
func (o *fakeOverlay) Parent() chain.Ref                         { return o.parent }
func (o *fakeOverlay) Preconfirmed() (*chain.Preconfirmed, bool) { return o.block(), !o.empty }
func (o *fakeOverlay) Transaction(h chain.Hash) (*chain.Preconfirmed, int, bool) {
	return o.block(), 5, h == preconfirmedTx
}
func (o *fakeOverlay) Account(a chain.Address) (chain.Account, bool) {
	return chain.Account{Exists: true, Nonce: 77, CodeHash: changedCode.Hash}, a == changedAddress
}
func (o *fakeOverlay) Slot(a chain.Address, k chain.Slot) (chain.Value, bool) {
	return changedValue, a == changedAddress && k == changedSlot
}
func (o *fakeOverlay) Code(h chain.Hash) ([]byte, bool) {
	return changedCode.Bytes, h == changedCode.Hash
}
func (o *fakeOverlay) Storage(_ chain.Address, after *chain.Slot, limit int) (page []chain.SlotDiff, more, wiped bool) {
	page, more = pageOf(o.slots, after, limit)
	return page, more, o.wiped
}
func (o *fakeOverlay) Diff() *chain.Diff {
	return &chain.Diff{Accounts: []chain.AccountDiff{{Address: changedAddress, Slots: o.slots, Wiped: o.wiped}}}
}

func TestPendingReadsTheOverlayOverLatest(t *testing.T) {
	state := newState(1, 0, 9)
	var p head.Publisher
	p.Publish(state, &fakeOverlay{parent: state.Head()}, time.Time{})
	defer p.Close()
	l := p.Acquire()
	defer l.Release()

	if b, ok := l.Pending(); !ok || b.Header.Number.Uint64() != 10 {
		t.Errorf("Pending = %+v, %v, want block 10", b, ok)
	}
	if _, index, ok := l.PendingTransaction(preconfirmedTx); !ok || index != 5 {
		t.Errorf("PendingTransaction = %d, %v, want 5", index, ok)
	}
	if _, _, ok := l.PendingTransaction(chain.Hash{8}); ok {
		t.Error("a transaction that nobody sent is pre-confirmed")
	}
	pending, err := l.View(chain.Pending)
	if err != nil {
		t.Fatal(err)
	}
	latest, err := l.View(chain.Latest)
	if err != nil {
		t.Fatal(err)
	}
	below := state.ref(9).Hash
	reads := []struct {
		name string
		view chain.View
		addr chain.Address
		want chain.Value
	}{
		{"changed, on pending", pending, changedAddress, changedValue},
		{"changed, on latest", latest, changedAddress, below},
		{"untouched, on pending", pending, chain.Address{2}, below},
	}
	for _, r := range reads {
		if got, err := r.view.Slot(r.addr, changedSlot); err != nil || got != r.want {
			t.Errorf("slot %s is %s, %v, want %s", r.name, got, err, r.want)
		}
	}
	if a, err := pending.Account(changedAddress); err != nil || a.Nonce != 77 {
		t.Errorf("account on pending is %+v, %v", a, err)
	}
	if a, err := latest.Account(changedAddress); err != nil || a.Nonce != 9 {
		t.Errorf("account on latest is %+v, %v", a, err)
	}
	if code, err := pending.Code(changedCode.Hash); err != nil || len(code) != 3 {
		t.Errorf("code on pending is %x, %v", code, err)
	}

	// Only the tag means it.
	var miss *chain.Miss
	if _, err := l.View(chain.ByNumber(10)); !errors.As(err, &miss) || miss.Reason != chain.Future {
		t.Errorf("View of the pre-confirmed block by number is %v, want future", err)
	}
}

// P3: an overlay that does not stand on the head by hash says nothing about it.
func TestOverlayOnAnotherBlockIsNotUsed(t *testing.T) {
	state := newState(1, 0, 9)
	tests := []struct {
		name    string
		overlay head.Overlay
	}{
		{"none", nil},
		{"nothing pre-confirmed", &fakeOverlay{parent: state.Head(), empty: true}},
		{"on the block before", &fakeOverlay{parent: state.ref(8)}},
		{"on a block of the same height", &fakeOverlay{parent: chain.Ref{Number: 9, Hash: chain.Hash{2}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var p head.Publisher
			p.Publish(newState(1, 0, 9), tt.overlay, time.Time{})
			defer p.Close()
			l := p.Acquire()
			defer l.Release()
			if b, ok := l.Pending(); ok {
				t.Errorf("Pending = %+v", b)
			}
			if _, _, ok := l.PendingTransaction(preconfirmedTx); ok {
				t.Error("its transaction is pre-confirmed")
			}
			v, err := l.View(chain.Pending)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := v.Slot(changedAddress, changedSlot); err != nil || got != state.ref(9).Hash {
				t.Errorf("slot on pending is %s, %v, want that of latest", got, err)
			}
		})
	}
}
