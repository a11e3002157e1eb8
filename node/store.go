// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"log/slog"

	"glimpse/archive"
)

// A Store says where the archive is and how much memory it may take. The zero
// Store is one in memory, which is gone when it is closed.
type Store struct {
	Datadir string
	CacheMB int // at most this much for the store; 0 means 256

	// Files, where not nil, is opened in place of the machine's file system.
	// Tests break it.
	Files archive.FS
}

// open opens the store for writing, in all but reserved bytes of its memory.
func (s Store) open(log *slog.Logger, reserved int64) (*archive.DB, error) {
	return archive.Open(s.Datadir, s.options(log, reserved))
}

// openReadOnly opens a store that must be there already.
func (s Store) openReadOnly(log *slog.Logger) (*archive.DB, error) {
	if s.Datadir == "" {
		return nil, errors.New("no datadir given")
	}
	o := s.options(log, 0)
	o.ReadOnly = true
	return archive.Open(s.Datadir, o)
}

func (s Store) options(log *slog.Logger, reserved int64) archive.Options {
	return archive.Options{CacheBytes: s.bytes() - reserved, Logger: log, FS: s.Files}
}

const defaultCacheMB = 256

func (s Store) bytes() int64 {
	if s.CacheMB == 0 {
		return defaultCacheMB << 20
	}
	return int64(s.CacheMB) << 20
}
