// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"glimpse/chain"
)

// Plant sets a key behind the DB's back, or deletes it where value is nil.
func (db *DB) Plant(key, value []byte) error {
	var err error
	if value == nil {
		err = db.pebble.Delete(key, pebble.NoSync)
	} else {
		err = db.pebble.Set(key, value, pebble.NoSync)
	}
	if err != nil {
		return err
	}
	h, _, err := loadHeads(db.pebble)
	if err == nil {
		db.publish(h)
	}
	return err
}

// PlantFormat sets the format behind the DB's back, or deletes it where value is
// nil. The DB is good for nothing but Close from then on.
func (db *DB) PlantFormat(value []byte) error {
	if value == nil {
		return db.pebble.Delete(metaKey(metaFormat), pebble.NoSync)
	}
	return db.pebble.Set(metaKey(metaFormat), value, pebble.NoSync)
}

// Dump returns all keys and values.
func (db *DB) Dump() (keys, values [][]byte, err error) {
	r, err := db.NewReader()
	if err != nil {
		return nil, nil, err
	}
	defer r.Release()
	k := checker{r: r}
	err = k.each(nil, nil, func(key, value []byte) error {
		keys = append(keys, append([]byte{}, key...))
		values = append(values, append([]byte{}, value...))
		return nil
	})
	return keys, values, err
}

// Compact moves everything into the last level.
func (db *DB) Compact() error {
	return db.pebble.Compact(context.Background(), []byte{0}, []byte{0xff}, false)
}

// Value codecs, for the fuzz targets.
var (
	AppendAccount   = appendAccount
	DecodeAccount   = decodeAccount
	AppendSlotValue = appendSlotValue
	DecodeSlotValue = decodeSlotValue
)

// How journals are stored.
var (
	PackJournal   = packJournal
	UnpackJournal = unpackJournal
)

// DecodeAndEncodeBlock is the block codec without its private type.
func DecodeAndEncodeBlock(data []byte) ([]byte, error) {
	b, err := decodeBlock(data)
	if err != nil {
		return nil, err
	}
	return appendBlock(nil, b), nil
}

// DecodeAndEncodeJournal is the codec of journals without its private type. The
// diff is not looked into.
func DecodeAndEncodeJournal(data []byte) ([]byte, error) {
	j, err := decodeJournal(0, data)
	if err != nil {
		return nil, err
	}
	d := new(chain.Diff)
	for _, h := range j.codes {
		d.Codes = append(d.Codes, chain.Code{Hash: h})
	}
	_, again := encodeJournal(d)
	return append(again[:len(data)-len(j.bare)], j.bare...), nil
}

// DecodeAndEncodeReceipts is the receipts codec without its private type.
func DecodeAndEncodeReceipts(data []byte) ([]byte, error) {
	s, err := decodeReceipts(data)
	if err != nil {
		return nil, err
	}
	hashes := make([]chain.Hash, s.len())
	for i := range hashes {
		hashes[i] = s.hash(i)
	}
	return appendReceipts(nil, hashes, s.receipts), nil
}

// Comparer is what Pebble sorts by.
var Comparer = newComparer

// GuardLog returns a file system whose log is in dir, and a way to raise a
// fault.
func GuardLog(fs vfs.FS, dir string) (guarded vfs.FS, raise func(error)) {
	faults := newFaults()
	return logGuard{fs, dir, faults}, faults.add
}
