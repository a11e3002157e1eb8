// SPDX-License-Identifier: Apache-2.0

package node

import (
	"time"

	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/archive"
	"glimpse/chain"
	"glimpse/follow"
	"glimpse/importer"
)

// followStore keeps the blocks of a chain that is followed. They are not synced
// one by one: what a crash takes can be had again.
type followStore struct {
	db      *archive.DB
	reading reading
	first   chain.Number
	synced  time.Time
}

var _ follow.Store = (*followStore)(nil)

// syncEvery is how much may have to be fetched again after a crash.
const syncEvery = 2 * time.Second

// Head implements follow.Store.
func (s *followStore) Head() (*follow.Head, error) {
	r, err := s.db.NewReader()
	if err != nil {
		return nil, err
	}
	h := &follow.Head{Ref: r.Head(), Release: r.Release}
	if h.Header, err = headerAt(r, h.Number); err == nil {
		h.View, err = s.reading.view(r, h.Number)
	}
	if err != nil {
		r.Release()
		return nil, err
	}
	return h, nil
}

// First implements follow.Store.
func (s *followStore) First() chain.Number { return s.first }

// Hash implements follow.Store.
func (s *followStore) Hash(n chain.Number) (chain.Hash, error) {
	return read(s.db, func(r *archive.Reader) (chain.Hash, error) { return r.Hash(n) })
}

// Commit implements follow.Store.
func (s *followStore) Commit(b *follow.Block, result *follow.Result) error {
	stored, err := followedBlock(b, result)
	if err != nil {
		return err
	}
	if err := s.db.CommitUnsynced(archiveBlock(stored, nil)); err != nil {
		return err
	}
	if time.Since(s.synced) < syncEvery {
		return nil
	}
	s.synced = time.Now()
	return s.db.Sync()
}

// followedBlock returns a block in the form that is stored. Where it has
// transactions of another chain's making, or nobody gave its receipts, only its
// header is kept: a body in part would be a lie.
func followedBlock(b *follow.Block, result *follow.Result) (importer.Block, error) {
	if block, err := b.Ethereum(); err == nil && len(result.Receipts) == len(block.Transactions()) {
		return importer.NewBlock(block, result.Receipts, result.Diff)
	}
	header, err := rlp.EncodeToBytes(b.Header)
	return importer.Block{Ref: b.Ref, Parent: b.Header.ParentHash, Header: header, Diff: result.Diff}, err
}

// Unwind implements follow.Store.
func (s *followStore) Unwind(to chain.Number) error { return s.db.Unwind(to, nil) }

// SetTags implements follow.Store.
func (s *followStore) SetTags(safe, finalized *chain.Ref) error { return s.db.SetTags(safe, finalized) }
