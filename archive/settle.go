// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Settle rewrites the store so that every key is in the last level once, which
// Pebble comes to by itself only in time. It reads and writes most of the store,
// and readers and writers go on meanwhile. It may end early with ctx, and the
// store is then as good as before.
func (db *DB) Settle(ctx context.Context) error {
	if err := db.settleUnderReader(ctx); err != nil {
		return fmt.Errorf("settle archive: %w", err)
	}
	return nil
}

func (db *DB) settleUnderReader(ctx context.Context) error {
	// A Reader is what keeps Close from taking Pebble away.
	r, err := db.NewReader()
	if err != nil {
		return err
	}
	defer r.Release()
	if err := db.writable(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-db.faults.raised: // while it cannot write, Pebble tries again without end
			stop()
		case <-ctx.Done():
		}
	}()
	err = db.pebble.Compact(ctx, []byte{0}, []byte{0xff}, true)
	if fault := db.faults.err(); fault != nil {
		return fault
	}
	return storeError(err)
}

// closePebble makes all that was written durable, closes Pebble, and leaves no
// log. After a fault the log is all that can be relied on: it stays as it is.
func (db *DB) closePebble() error {
	if db.readOnly || db.faults.err() != nil {
		return db.pebble.Close()
	}
	settling := db.flushAll()
	if err := errors.Join(settling, db.pebble.Close()); err != nil {
		return err
	}
	if err := db.faults.err(); err != nil {
		return err
	}
	// Pebble keeps recycled logs, each as big as a memtable, which would be most
	// of a small store. The tables are durable by now and say that no log is
	// needed, so it does not matter which of them a crash leaves.
	return db.dropLogs(db.logs)
}

// flushAll moves everything into tables. It syncs the log before: if the tables
// cannot be written, nothing is lost.
func (db *DB) flushAll() error {
	if err := db.logSync(); err != nil {
		return err
	}
	return db.flush()
}

// flush moves what is in memory into tables. While it cannot write, Pebble tries
// again without end.
func (db *DB) flush() error {
	flushed, err := db.pebble.AsyncFlush()
	if err != nil {
		return storeError(err)
	}
	select {
	case <-flushed:
	case <-db.faults.raised:
	}
	return db.faults.err()
}

// dropLogs deletes the logs in dir: all that they hold was flushed.
func (db *DB) dropLogs(dir string) error {
	names, err := db.fs.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		if gone := db.fs.Remove(db.fs.PathJoin(dir, name)); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	if err != nil {
		return err
	}
	d, err := db.fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
