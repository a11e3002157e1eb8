// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/ethereum/go-ethereum/common/lru"

	"glimpse/chain"
)

// Errors of a DB as a whole.
var (
	// ErrEmpty is the answer of a store in which Init was never called.
	ErrEmpty = errors.New("archive is empty: it has no genesis block")

	// ErrClosed is the answer after Close.
	ErrClosed = errors.New("archive is closed")

	// ErrReadOnly refuses writes where Options.ReadOnly was set.
	ErrReadOnly = errors.New("archive is opened for reading only")

	// ErrLocked refuses to open a directory that a running process has open.
	ErrLocked = errors.New("archive is in use by another process")

	// ErrFormat refuses to open a store of another format.
	ErrFormat = errors.New("archive has another format")

	// ErrSparse refuses to use a sparse store where the state of every block
	// is needed.
	ErrSparse = errors.New("archive begins after genesis and does not know all state")

	// ErrGenesis refuses to use a store for another chain than it was made for.
	ErrGenesis = errors.New("archive belongs to another chain")

	// ErrParent refuses a block that does not follow the head.
	ErrParent = errors.New("block does not follow the head")

	// ErrDigest refuses a block after which the store would have another digest
	// than it must have.
	ErrDigest = errors.New("the store would have another digest")

	// ErrNoCode refuses an account whose bytecode neither comes with it nor is
	// here.
	ErrNoCode = errors.New("code is not known")
)

// A DB is an archive in one directory. It is safe for concurrent use; writing
// methods wait for each other.
//
// Commit and Init are durable when they return. Every other write becomes
// durable with the next of these, or with Sync; a crash loses writes only from
// the end, never from between (A1).
type DB struct {
	pebble   *pebble.DB
	lock     *pebble.Lock
	fs       FS
	logs     string // directory of the log
	readOnly bool
	faults   *faults
	codes    *lru.SizeConstrainedCache[chain.Hash, []byte]
	known    *knownSlots
	wiped    *wipeFilter
	readers  atomic.Int64 // Readers not yet freed, current among them

	// current is what NewReader gives out: the store after the last write that
	// succeeded as a whole. It is nil before Init and after Close.
	current atomic.Pointer[Reader]
	closed  atomic.Bool

	writing  sync.Mutex    // held by the one writer
	inFlight chan struct{} // guarded by writing: closed when the last write is done
}

// closeGrace is how long Close waits for a disk that holds a write up.
const closeGrace = 5 * time.Second

// Open opens the archive in dir and makes it if there is none. An empty dir
// means an archive in memory, which is gone when it is closed.
func Open(dir string, o Options) (*DB, error) {
	o.fill(dir)
	db, err := open(dir, o)
	if err != nil {
		return nil, fmt.Errorf("open archive %q: %w", dir, err)
	}
	return db, nil
}

func open(dir string, o Options) (_ *DB, err error) {
	lock, err := lockDir(dir, &o)
	if err != nil {
		return nil, err
	}
	faults := newFaults()
	p := o.pebble(dir, faults)
	p.Lock = lock
	store, err := pebble.Open(dir, p)
	if err != nil {
		return nil, errors.Join(storeError(err), lock.Close())
	}
	db := &DB{
		pebble:   store,
		lock:     lock,
		fs:       o.FS,
		logs:     o.FS.PathJoin(dir, logDir),
		readOnly: o.ReadOnly,
		faults:   faults,
		codes:    lru.NewSizeConstrainedCache[chain.Hash, []byte](uint64(o.codeBytes())),
		known:    newKnownSlots(o.knownBytes()),
		wiped:    new(wipeFilter),
	}
	if err := db.load(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// lockDir makes the directory, or finds a store in it where none is to be made.
func lockDir(dir string, o *Options) (*pebble.Lock, error) {
	if o.ReadOnly {
		if err := mustHoldStore(dir, o); err != nil {
			return nil, err
		}
	} else if err := o.FS.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	lock, err := pebble.LockDirectory(dir, o.FS)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLocked, err)
	}
	return lock, nil
}

func mustHoldStore(dir string, o *Options) error {
	if _, err := o.FS.Stat(dir); err != nil {
		return err
	}
	found, err := pebble.Peek(dir, o.FS)
	if err == nil && !found.Exists {
		err = ErrEmpty
	}
	return storeError(err)
}

func (db *DB) loadWipes() error {
	iter, err := db.pebble.NewIter(&pebble.IterOptions{
		LowerBound: []byte{spaceWipe},
		UpperBound: []byte{spaceWipe + 1},
	})
	if err != nil {
		return storeError(err)
	}
	for ok := iter.First(); ok; ok = iter.NextPrefix() {
		if key := iter.Key(); len(key) == accountStem+numberSize {
			db.wiped.add(addressOf(key))
		}
	}
	return storeError(iter.Close())
}

// NewReader returns the store as the last successful write left it. The caller
// must Release it. The error is ErrEmpty before Init and ErrClosed after Close.
// It takes no lock and does no I/O.
func (db *DB) NewReader() (*Reader, error) {
	for {
		r := db.current.Load()
		switch {
		case db.closed.Load():
			return nil, ErrClosed
		case r == nil:
			return nil, ErrEmpty
		case r.Retain():
			return r, nil
		}
		// A writer replaced r in this instant: its successor is there already.
	}
}

// Identity returns which chain the store belongs to; ok is false before Init.
func (db *DB) Identity() (id Identity, ok bool) {
	r, err := db.NewReader()
	if err != nil {
		return Identity{}, false
	}
	defer r.Release()
	return r.Identity(), true
}

// Close makes everything durable and frees the store. What is in memory is moved
// into tables, so that no log remains. It refuses while Readers are held, because their reads would fail in Pebble, and while a failing disk
// holds a write up; the store then takes no more writes, and Close may be
// called again. Closing twice is fine.
func (db *DB) Close() error {
	db.writing.Lock()
	defer db.writing.Unlock()
	if db.pebble == nil {
		return nil
	}
	db.closed.Store(true)
	if r := db.current.Swap(nil); r != nil {
		r.Release()
	}
	if n := db.readers.Load(); n > 0 {
		return fmt.Errorf("close archive: %d readers are still held", n)
	}
	if !db.settled() {
		return fmt.Errorf("close archive: a write is held up after: %w", db.faults.err())
	}
	err := errors.Join(db.closePebble(), db.lock.Close())
	db.pebble = nil
	if err != nil {
		return fmt.Errorf("close archive: %w", storeError(err))
	}
	return nil
}

// settled waits a moment for a write that was left behind.
func (db *DB) settled() bool {
	if db.inFlight == nil {
		return true
	}
	select {
	case <-db.inFlight:
		return true
	case <-time.After(closeGrace):
		return false
	}
}
