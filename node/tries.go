// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"log/slog"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/archive"
	"glimpse/chain"
	"glimpse/merkle"
)

// trieNodes lets merkle read the nodes that are stored now.
type trieNodes struct{ db *archive.DB }

func (t trieNodes) Side(key []byte) (value []byte, ok bool, err error) {
	r, err := t.db.NewReader()
	if err != nil {
		return nil, false, err
	}
	defer r.Release()
	return r.Side(key)
}

// sideWrites are what the archive stores of a trie.
func sideWrites(writes []merkle.Write) []archive.SideWrite {
	side := make([]archive.SideWrite, len(writes))
	for i, w := range writes {
		side[i] = archive.SideWrite(w)
	}
	return side
}

// flat lets merkle list the state of one block.
type flat struct {
	*archive.Reader
	number chain.Number
}

var _ merkle.Flat = flat{}

func (f flat) Accounts(after *chain.Address, limit int) ([]chain.AccountDiff, bool, error) {
	entries, more, err := f.Reader.Accounts(f.number, after, limit)
	accounts := make([]chain.AccountDiff, len(entries))
	for i, e := range entries {
		accounts[i] = chain.AccountDiff{Address: e.Address, Changed: true, Account: e.Account}
	}
	return accounts, more, err
}

func (f flat) Slots(addr chain.Address, after *chain.Slot, limit int) ([]chain.SlotDiff, bool, error) {
	return f.Reader.Slots(addr, f.number, after, limit)
}

// openTries returns the state tries of the head. A store that was filled without
// them, or by an import that did not keep them up, has them built from its flat
// state first, which must give the root in the head's header.
func openTries(db *archive.DB, cacheBytes int, log *slog.Logger) (*merkle.State, error) {
	r, err := db.NewReader()
	if err != nil {
		return nil, err
	}
	defer r.Release()
	tries, err := merkle.Open(trieNodes{db}, cacheBytes)
	if err != nil {
		return nil, err
	}
	head := r.Head()
	if at, _, ok := tries.At(); ok && at == head {
		return tries, nil
	}
	log.Info("building state tries", "block", head.Number)
	tries, err = merkle.Rebuild(flat{r, head.Number}, trieNodes{db}, cacheBytes, head,
		func(writes []merkle.Write) error { return db.WriteSide(sideWrites(writes)) })
	if err != nil {
		return nil, fmt.Errorf("build state tries: %w", err)
	}
	header, err := headerAt(r, head.Number)
	if err != nil {
		return nil, err
	}
	if _, root, _ := tries.At(); root != header.Root {
		return nil, fmt.Errorf("%w: state of block %s has root %s, want %s", chain.ErrCorrupt, head, root, header.Root)
	}
	return tries, nil
}

func headerAt(r interface {
	Header(chain.Number) ([]byte, error)
}, n chain.Number) (*types.Header, error) {
	text, err := r.Header(n)
	if err != nil {
		return nil, err
	}
	header := new(types.Header)
	if err := rlp.DecodeBytes(text, header); err != nil {
		return nil, fmt.Errorf("%w: header of block %d: %w", chain.ErrCorrupt, n, err)
	}
	return header, nil
}
