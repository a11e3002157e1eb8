// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logDir is where Pebble keeps its write-ahead log, inside the store's own
// directory.
const logDir = "log"

// A logGuard is a file system on which the log never seems to fail. Pebble ends
// the process when it cannot write its log; here reads must go on (A5). So the
// first failure is kept in faults, which every writer asks after each write, and
// from then on nothing of the log reaches the disk: what is there stays as after
// a loss of power at that instant.
type logGuard struct {
	vfs.FS
	dir    string
	faults *faults
}

// Create implements vfs.FS.
func (g logGuard) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if g.PathDir(name) != g.dir {
		return g.FS.Create(name, c)
	}
	return g.guard(func() (vfs.File, error) { return g.FS.Create(name, c) })
}

// ReuseForWrite implements vfs.FS.
func (g logGuard) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if g.PathDir(name) != g.dir {
		return g.FS.ReuseForWrite(old, name, c)
	}
	return g.guard(func() (vfs.File, error) { return g.FS.ReuseForWrite(old, name, c) })
}

// List implements vfs.FS. A copy of a store that Checkpoint made has no log, and
// may be opened for reading only, where none is made.
func (g logGuard) List(dir string) ([]string, error) {
	names, err := g.FS.List(dir)
	if dir == g.dir && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return names, err
}

// OpenDir implements vfs.FS: a new log is there only after its directory was
// synced. Where there is no directory, as List says, there is nothing to sync.
func (g logGuard) OpenDir(name string) (vfs.File, error) {
	f, err := g.FS.OpenDir(name)
	if name == g.dir && errors.Is(err, fs.ErrNotExist) {
		f, err = vfs.NewMemFile(nil), nil
	}
	if err != nil || name != g.dir {
		return f, err
	}
	return logFile{f, g.faults}, nil
}

// guard opens a log, or a file in memory in its place. After a fault there must
// be no new log on disk: Pebble takes only the last one to end early.
func (g logGuard) guard(open func() (vfs.File, error)) (vfs.File, error) {
	f := vfs.NewMemFile(nil)
	g.faults.try("open log", func() (err error) {
		opened, err := open()
		if err == nil {
			f = opened
		}
		return err
	})
	return logFile{f, g.faults}, nil
}

// A logFile is one file of the log, or its directory.
type logFile struct {
	vfs.File
	faults *faults
}

// Write implements vfs.File.
func (l logFile) Write(p []byte) (int, error) {
	l.faults.try("write log", func() error { _, err := l.File.Write(p); return err })
	return len(p), nil
}

// Preallocate implements vfs.File.
func (l logFile) Preallocate(offset, length int64) error {
	l.faults.try("extend log", func() error { return l.File.Preallocate(offset, length) })
	return nil
}

// Sync implements vfs.File.
func (l logFile) Sync() error {
	l.faults.try("sync log", l.File.Sync)
	return nil
}

// SyncData implements vfs.File.
func (l logFile) SyncData() error {
	l.faults.try("sync log", l.File.SyncData)
	return nil
}

// SyncTo implements vfs.File.
func (l logFile) SyncTo(length int64) (full bool, _ error) {
	l.faults.try("sync log", func() (err error) {
		full, err = l.File.SyncTo(length)
		return err
	})
	return full, nil
}

// Close implements vfs.File. It closes the file even after a fault.
func (l logFile) Close() error {
	if err := l.File.Close(); err != nil {
		l.faults.add(fmt.Errorf("close log: %w", err))
	}
	return nil
}
