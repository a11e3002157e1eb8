// SPDX-License-Identifier: Apache-2.0

package archive

// Sizes is how big a store is, in bytes but for Readers.
type Sizes struct {
	Disk      uint64 // all files, the log and those that are about to be deleted among them
	Log       uint64 // the log, recycled files among them
	Memtables uint64 // writes not yet flushed, and those that Readers still hold
	Cache     uint64 // cached blocks of data, without bytecode

	// CompactionDebt is an estimate of what compactions still have to rewrite.
	// It falls to about zero when nothing is written.
	CompactionDebt uint64

	// Readers is how many different moments of the store are held, the current
	// one among them. Each that is held for long keeps its versions on disk.
	Readers int
}

// Sizes returns how big the store is now. It waits for no writer and does no
// I/O. The error is ErrEmpty before Init and ErrClosed after Close.
//
// While it runs it is one of the Readers for which Close does not wait: whoever
// asks in the background must have stopped before.
func (db *DB) Sizes() (Sizes, error) {
	// A Reader is what keeps Close from taking Pebble away.
	r, err := db.NewReader()
	if err != nil {
		return Sizes{}, err
	}
	defer r.Release()
	m := db.pebble.Metrics()
	// Pebble counts the current file of the log as big as it was when it was
	// opened; what was written to it since is only in the logical size.
	grown := max(m.WAL.Size, m.WAL.PhysicalSize) - m.WAL.PhysicalSize
	return Sizes{
		Disk:           m.DiskSpaceUsage() + grown,
		Log:            m.WAL.PhysicalSize + m.WAL.ObsoletePhysicalSize + grown,
		Memtables:      m.MemTable.Size + m.MemTable.ZombieSize,
		Cache:          uint64(max(m.BlockCache.Size, 0)),
		CompactionDebt: m.Compact.EstimatedDebt,
		Readers:        int(db.readers.Load()),
	}, nil
}
