// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"log/slog"
	"slices"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"

	"glimpse/archive"
	"glimpse/chain"
	"glimpse/follow/origin"
)

// ahead reads state from the upstream before it is needed, many values at once:
// execution asks for them one by one, and each takes as long as the way to the
// upstream. Nothing depends on it: what it does not get is asked for later.
type ahead struct {
	db     *archive.DB
	origin *origin.Origin
	log    *slog.Logger

	// sealed holds the newest header at most; an older one says nothing more.
	sealed chan *types.Header
}

func newAhead(db *archive.DB, o *origin.Origin, log *slog.Logger) *ahead {
	return &ahead{db: db, origin: o, log: log, sealed: make(chan *types.Header, 1)}
}

// after is told of a block that was sealed, and does not wait.
func (a *ahead) after(h *types.Header) {
	select {
	case <-a.sealed:
	default:
	}
	select {
	case a.sealed <- h:
	default: // another one came in between
	}
}

// run reads what the blocks to come will write, until ctx ends.
func (a *ahead) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case h := <-a.sealed:
			a.read(ctx, nil, systemSlots(h))
		}
	}
}

// transactions reads what transactions read for sure: the accounts of senders and
// recipients, and what their access lists name.
func (a *ahead) transactions(signer types.Signer, txs []*types.Transaction) {
	if a == nil {
		return
	}
	var addresses []chain.Address
	var keys []origin.Key
	for _, tx := range txs {
		if from, err := types.Sender(signer, tx); err == nil {
			addresses = append(addresses, from)
		}
		if to := tx.To(); to != nil {
			addresses = append(addresses, *to)
		}
		for _, entry := range tx.AccessList() {
			addresses = append(addresses, entry.Address)
			for _, slot := range entry.StorageKeys {
				keys = append(keys, origin.Key{Address: entry.Address, Slot: chain.Slot(slot)})
			}
		}
	}
	slices.SortFunc(addresses, chain.Address.Cmp)
	a.read(context.Background(), slices.Compact(addresses), keys)
}

func (a *ahead) read(ctx context.Context, addresses []chain.Address, keys []origin.Key) {
	r, err := a.db.NewReader()
	if err != nil {
		return // the store is closed
	}
	defer r.Release()
	base, err := r.At(r.Head().Number)
	if err == nil {
		err = a.origin.Prefetch(ctx, base, addresses, keys)
	}
	if err != nil && ctx.Err() == nil {
		a.log.Debug("state not read ahead", "err", err)
	}
}

// What is read ahead of the newest block. Their times are not known, so all
// seconds that they may have are read.
const (
	blocksAhead  = 8
	secondsAhead = 16
)

// systemSlots are those that the beginning of each block writes: each a slot that
// was not touched for as long as its contract remembers, about 8,191 blocks.
func systemSlots(h *types.Header) (keys []origin.Key) {
	slot := func(addr chain.Address, n uint64) {
		keys = append(keys, origin.Key{Address: addr, Slot: uint256.NewInt(n).Bytes32()})
	}
	if h.ParentBeaconRoot == nil {
		return nil
	}
	for n := range uint64(blocksAhead) {
		slot(params.HistoryStorageAddress, (h.Number.Uint64()+n)%params.HistoryServeWindow)
	}
	for n := range uint64(secondsAhead) {
		at := (h.Time + 1 + n) % beaconRootsWindow
		slot(params.BeaconRootsAddress, at)
		slot(params.BeaconRootsAddress, at+beaconRootsWindow)
	}
	return keys
}

// beaconRootsWindow is how many roots the contract of EIP-4788 keeps.
const beaconRootsWindow = 8191
