// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// load brings what is kept in memory up to what is on disk.
func (db *DB) load() error {
	if err := db.checkFormat(); err != nil {
		return err
	}
	if err := db.loadWipes(); err != nil {
		return fmt.Errorf("load wipes: %w", err)
	}
	h, found, err := loadHeads(db.pebble)
	if err != nil {
		return err
	}
	if found {
		db.known.last.since = uint64(h.head.Number)
		err = db.loadCurrent(h)
	}
	return errors.Join(err, db.faults.err())
}

// loadCurrent makes what is on disk the current state, with the digest of its
// head.
func (db *DB) loadCurrent(h heads) error {
	key := appendNumberKey(nil, spaceDigest, h.head.Number)
	value, found, err := db.late(key)
	if err == nil && !found {
		err = missing(key)
	}
	if err != nil {
		return err
	}
	if h.digest, err = decodeDigest(value); err != nil {
		return err
	}
	db.current.Store(newReader(db, h))
	return nil
}

// checkFormat refuses a store of another format, and marks an empty one as being
// of this one. InitAt marks it again.
func (db *DB) checkFormat() error {
	m := metaReader{pebble: db.pebble}
	value, found := m.find(metaFormat)
	if m.err != nil {
		return m.err
	}
	if found {
		if n, err := decodeNumber(value); err != nil || n != format && n != formatSparse {
			return fmt.Errorf("%w: %x, this program reads %d and %d: import its chain again, or follow it anew",
				ErrFormat, value, format, formatSparse)
		}
		return nil
	}
	if empty, err := db.holdsNothing(); err != nil || !empty {
		return errors.Join(err, fmt.Errorf("%w: it has none", ErrFormat))
	}
	if db.readOnly {
		return ErrEmpty
	}
	return storeError(db.pebble.Set(metaKey(metaFormat), appendNumber(nil, format), pebble.Sync))
}

func (db *DB) holdsNothing() (bool, error) {
	iter, err := db.pebble.NewIter(nil)
	if err != nil {
		return false, storeError(err)
	}
	some := iter.First()
	return !some, storeError(iter.Close())
}
