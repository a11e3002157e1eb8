// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"glimpse/chain"
)

// load brings what is kept in memory up to what is on disk.
func (db *DB) load() error {
	version, err := db.checkFormat()
	if err != nil {
		return err
	}
	if err := db.loadWipes(); err != nil {
		return fmt.Errorf("load wipes: %w", err)
	}
	h, found, err := loadHeads(db.pebble)
	if err != nil {
		return err
	}
	// One without digests is brought up to date together with them.
	if outdated := version < format && (!found || h.digests.known); outdated && !db.readOnly {
		err = db.setFormat(isSparse(version))
	}
	if err == nil && found {
		db.known.last.since = uint64(h.head.Number)
		err = db.loadCurrent(h)
	}
	return errors.Join(err, db.faults.err())
}

// loadCurrent makes what is on disk the current state, with the digest of its
// head, and gives digests to a store that has none.
func (db *DB) loadCurrent(h heads) error {
	if h.digests.known {
		key := appendNumberKey(nil, spaceDigest, h.head.Number)
		value, found, err := db.late(key)
		if err != nil {
			return err
		}
		if !found {
			return missing(key)
		}
		if h.digests.head, err = decodeDigest(value); err != nil {
			return err
		}
	}
	if h.digests.known || db.readOnly {
		db.current.Store(newReader(db, h))
		return nil
	}
	r := newReader(db, h)
	defer r.Release()
	if err := db.upgrade(r, h); err != nil {
		return fmt.Errorf("begin digests at block %s: %w", h.head, err)
	}
	return nil
}

// upgrade begins digests at the head, in one step: a crash leaves a store with
// them or one of the format before.
func (db *DB) upgrade(r *Reader, h heads) error {
	c := db.newChanges()
	defer c.close()
	err := r.read(func(cur *cursor) (err error) {
		h.digests, err = c.beginDigests(cur, h.identity, h.head.Number)
		return err
	})
	if err != nil {
		return err
	}
	c.set(metaKey(metaFormat), appendNumber(nil, present(h.sparse)))
	return db.apply(c, h, pebble.Sync)
}

func (db *DB) setFormat(sparse bool) error {
	return storeError(db.pebble.Set(metaKey(metaFormat), appendNumber(nil, present(sparse)), pebble.Sync))
}

// present is the format that this program writes.
func present(sparse bool) chain.Number {
	if sparse {
		return formatSparse
	}
	return format
}

// checkFormat returns the format of a store, refuses one that this program does
// not know, and marks an empty store as being of the present one.
func (db *DB) checkFormat() (chain.Number, error) {
	m := metaReader{pebble: db.pebble}
	value, found := m.find(metaFormat)
	if m.err != nil {
		return 0, m.err
	}
	if found {
		n, err := decodeNumber(value)
		if err != nil || n < formatUndigested || n > formatSparse {
			return 0, fmt.Errorf("%w: %x, this program reads %d to %d", ErrFormat, value, formatUndigested, formatSparse)
		}
		return n, nil
	}
	if empty, err := db.holdsNothing(); err != nil || !empty {
		return 0, errors.Join(err, fmt.Errorf("%w: it has none", ErrFormat))
	}
	if db.readOnly {
		return 0, ErrEmpty
	}
	return format, db.setFormat(false)
}

func (db *DB) holdsNothing() (bool, error) {
	iter, err := db.pebble.NewIter(nil)
	if err != nil {
		return false, storeError(err)
	}
	some := iter.First()
	return !some, storeError(iter.Close())
}
