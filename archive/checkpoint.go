// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"

	"glimpse/chain"
)

// A Checkpoint says at which block a copy of a store is.
type Checkpoint struct {
	Head   chain.Ref
	Digest Digest
}

// Checkpoint makes a copy of the store at its head in dir, which must not exist
// and is made, on the store's own file system. The copy is a store: Open opens
// it. It shares its tables with the store through hard links where the file
// system has them, so it costs little until the store has rewritten them; they
// are never written again, and must not be written by others. Everything in it
// is durable when Checkpoint returns.
//
// Readers do not notice (P4). Writes wait while the tables are linked, which
// does not depend on how much was written before: that is flushed first, beside
// them. After an error nothing is left in dir, and the store goes on.
func (db *DB) Checkpoint(dir string) (Checkpoint, error) {
	at, err := db.checkpoint(dir)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("checkpoint in %q: %w", dir, err)
	}
	return at, nil
}

func (db *DB) checkpoint(dir string) (Checkpoint, error) {
	// Most of what waits in memory is flushed while commits go on, what they
	// added meanwhile when they wait.
	if err := db.flushUnderReader(); err != nil {
		return Checkpoint{}, err
	}
	db.writing.Lock()
	defer db.writing.Unlock()
	if err := db.writable(); err != nil {
		return Checkpoint{}, err
	}
	r := db.current.Load()
	if r == nil {
		return Checkpoint{}, ErrEmpty
	}
	if err := db.flush(); err != nil {
		return Checkpoint{}, err
	}
	if err := db.pebble.Checkpoint(dir); err != nil {
		return Checkpoint{}, storeError(err)
	}
	// Pebble puts the copy's logs where Open would not look, and they are as big
	// as recycled files are, which would be most of a small copy.
	if err := db.dropLogs(dir); err != nil {
		return Checkpoint{}, errors.Join(err, db.fs.RemoveAll(dir))
	}
	return Checkpoint{r.heads.head, r.heads.digest}, nil
}

// flushUnderReader flushes without holding writers up. A Reader is what keeps
// Close from taking Pebble away.
func (db *DB) flushUnderReader() error {
	r, err := db.NewReader()
	if err != nil {
		return err
	}
	defer r.Release()
	if err := db.writable(); err != nil {
		return err
	}
	return db.flush()
}
