// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"glimpse/chain"
)

// changes collects one batch. Pebble copies what it is given, so key can be
// built again and again in the same place. The first error is kept until apply.
type changes struct {
	batch *pebble.Batch
	key   []byte
	value []byte
	err   error
	lost  bool // Pebble still has the batch

	// sparse says that absence must be kept: below it is not nothing, but what
	// was at the first block.
	sparse bool
}

func (db *DB) newChanges() *changes { return &changes{batch: db.pebble.NewBatch()} }

func (c *changes) close() {
	if !c.lost {
		_ = c.batch.Close() // it has no error to return
	}
}

func (c *changes) set(key, value []byte) { c.note(c.batch.Set(key, value, nil)) }
func (c *changes) delete(key []byte)     { c.note(c.batch.Delete(key, nil)) }

func (c *changes) deletePrefix(prefix []byte) {
	c.note(c.batch.DeleteRange(prefix, appendPast(nil, prefix), nil))
}

func (c *changes) note(err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *changes) setSlot(a chain.Address, s chain.Slot, n chain.Number, v chain.Value) {
	c.key = appendSlotKey(c.key[:0], a, s, n)
	c.value = appendSlotValue(c.value[:0], v)
	c.set(c.key, c.value)
}

func (c *changes) deleteSlot(a chain.Address, s chain.Slot, n chain.Number) {
	c.key = appendSlotKey(c.key[:0], a, s, n)
	c.delete(c.key)
}

func (c *changes) setAccount(a chain.Address, n chain.Number, v *chain.Account) {
	c.key = appendAccountKey(c.key[:0], a, n)
	c.value = appendAccount(c.value[:0], v)
	c.set(c.key, c.value)
}

func (c *changes) deleteAccount(a chain.Address, n chain.Number) {
	c.key = appendAccountKey(c.key[:0], a, n)
	c.delete(c.key)
}

func (c *changes) setWipe(a chain.Address, n chain.Number) {
	c.key = appendWipeKey(c.key[:0], a, n)
	c.set(c.key, nil)
}

func (c *changes) deleteWipe(a chain.Address, n chain.Number) {
	c.key = appendWipeKey(c.key[:0], a, n)
	c.delete(c.key)
}

// begin returns the store as it is and an empty batch. The caller holds
// db.writing, and closes the changes.
func (db *DB) begin() (*Reader, *changes, error) {
	if err := db.writable(); err != nil {
		return nil, nil, err
	}
	r := db.current.Load()
	if r == nil {
		return nil, nil, ErrEmpty
	}
	c := db.newChanges()
	c.sparse = r.heads.sparse
	return r, c, nil
}

func (db *DB) writable() error {
	switch err := db.faults.err(); {
	case db.closed.Load():
		return ErrClosed
	case db.readOnly:
		return ErrReadOnly
	case err != nil:
		return fmt.Errorf("archive takes no writes after: %w", err)
	}
	return nil
}

// apply writes the batch and publishes the store as it then is, with one
// pointer store (P4, P6). After an error it is not known whether the batch will
// be there when the store is opened again; until then it is not seen.
func (db *DB) apply(c *changes, h heads, how *pebble.WriteOptions) error {
	if err := db.applyBatch(c, how); err != nil {
		return err
	}
	db.publish(h)
	return nil
}

func (db *DB) publish(h heads) {
	if old := db.current.Swap(newReader(db, h)); old != nil {
		old.Release()
	}
}

// applyBatch asks faults whether the write succeeded: for a log that could not
// be written Pebble has no error to return. And while it cannot flush, Pebble
// holds writes up without end; so this one has a goroutine, which is left
// behind when there is a fault.
func (db *DB) applyBatch(c *changes, how *pebble.WriteOptions) error {
	if c.err != nil {
		return c.err
	}
	done := make(chan struct{})
	db.inFlight = done
	go func() {
		defer close(done)
		if err := db.pebble.Apply(c.batch, how); err != nil {
			db.faults.add(storeError(err))
		}
	}()
	select {
	case <-done:
	case <-db.faults.raised:
		c.lost = true
	}
	return db.faults.err()
}

// Sync makes everything written so far durable.
func (db *DB) Sync() error {
	db.writing.Lock()
	defer db.writing.Unlock()
	err := db.writable()
	if err == nil {
		err = db.logSync()
	}
	if err != nil {
		return fmt.Errorf("sync archive: %w", err)
	}
	return nil
}

// logSync writes an empty record and waits for it: the log is in order, so all
// before it is durable too.
func (db *DB) logSync() error {
	c := db.newChanges()
	defer c.close()
	c.note(c.batch.LogData(nil, nil))
	return db.applyBatch(c, pebble.Sync)
}
