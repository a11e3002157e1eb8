// SPDX-License-Identifier: Apache-2.0

package node

import (
	"glimpse/archive"
	"glimpse/chain"
	"glimpse/devchain"
	"glimpse/importer"
	"glimpse/merkle"
)

// devStore is the embedded chain's view of the archive. Its blocks are durable
// when Commit returns: nobody could send them again.
type devStore struct {
	importTarget
}

func newDevStore(db *archive.DB, tries *merkle.State) *devStore {
	return &devStore{importTarget{db: db, tries: tries}}
}

// Head implements devchain.Store.
func (s *devStore) Head() (devchain.Head, error) {
	head, err := s.importTarget.Head()
	return devchain.Head{Ref: head.Ref, View: head.View, Release: head.Release}, err
}

// Body implements devchain.Store.
func (s *devStore) Body(n chain.Number) ([]byte, error) {
	return read(s.db, func(r *archive.Reader) ([]byte, error) { return r.Body(n) })
}

// Commit implements devchain.Store.
func (s *devStore) Commit(sealed *devchain.Sealed) error {
	b, err := importer.NewBlock(sealed.Block, sealed.Receipts, sealed.Diff)
	if err != nil {
		return err
	}
	return s.db.Commit(archiveBlock(b, sideWrites(s.tries.Commit(b.Ref))))
}

// Unwind implements devchain.Store.
func (s *devStore) Unwind(n chain.Number) error { return unwind(s.db, s.tries, n) }

// SetTags implements devchain.Store.
func (s *devStore) SetTags(safe, finalized chain.Ref) error { return s.db.SetTags(&safe, &finalized) }
