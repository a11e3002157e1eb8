// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options say how a DB is opened. The zero value is a good default.
type Options struct {
	// CacheBytes bounds the memory of the store: blocks of data, writes not yet
	// flushed, bytecode and slots that were read. Zero means 256 MiB; less than 4 MiB is raised to
	// that.
	CacheBytes int64

	// ReadOnly opens an existing store and refuses every write.
	ReadOnly bool

	// Logger receives Pebble's own messages at debug level. Nil drops them;
	// whatever matters in them is also returned as an error.
	Logger *slog.Logger

	// FS replaces the file system, for tests that inject faults; archivetest
	// makes such file systems. Nil is that of the machine, or memory where the
	// directory is empty.
	FS FS
}

const (
	defaultCacheBytes = 256 << 20
	minCacheBytes     = 4 << 20
	maxMemTable       = 64 << 20
	maxCodeCache      = 64 << 20
	maxKnownSlots     = 64 << 20
)

func (o *Options) fill(dir string) {
	if o.CacheBytes == 0 {
		o.CacheBytes = defaultCacheBytes
	}
	o.CacheBytes = max(o.CacheBytes, minCacheBytes)
	if o.FS == nil {
		if o.FS = vfs.Default; dir == "" {
			o.FS = vfs.NewMem()
		}
	}
}

// codeBytes is the part of CacheBytes that holds bytecode.
func (o *Options) codeBytes() int64 { return min(o.CacheBytes/8, maxCodeCache) }

// knownBytes is the part of CacheBytes that holds slots that were read.
func (o *Options) knownBytes() int64 { return min(o.CacheBytes/8, maxKnownSlots) }

// pebble returns the options for this workload: many versions of short values,
// read by one seek each.
func (o *Options) pebble(dir string, faults *faults) *pebble.Options {
	logs := o.FS.PathJoin(dir, logDir)
	p := &pebble.Options{
		FS:                 logGuard{o.FS, logs, faults},
		WALDir:             pebble.MakeStoreRelativePath(o.FS, logDir), // a store can be moved, and copied
		ReadOnly:           o.ReadOnly,
		Comparer:           newComparer(),
		FormatMajorVersion: pebble.FormatNewest,
		Logger:             pebbleLog{o.Logger, faults},

		// Pebble takes the memtables out of the cache's size: a quarter of it
		// when all four are full.
		CacheSize:                   o.CacheBytes - o.codeBytes() - o.knownBytes(),
		MemTableSize:                uint64(min(o.CacheBytes/16, maxMemTable)),
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       4,
		LBaseMaxBytes:               max(o.CacheBytes, 64<<20),
	}
	for i := range p.Levels {
		p.Levels[i].BlockSize = 4 << 10
		p.Levels[i].IndexBlockSize = 256 << 10
		p.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		p.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.SnappyCompression }
	}
	last := &p.Levels[len(p.Levels)-1]
	last.BlockSize = 16 << 10
	settled := settledCompression()
	last.Compression = func() *sstable.CompressionProfile { return settled }
	// Columns have an offset for every key, version and value, which do not shrink:
	// rows take 2 % less room, and a tenth of the time of an import less to write.
	p.Experimental.EnableColumnarBlocks = func() bool { return false }
	// By default Pebble moves every version but the newest into blocks of
	// their own. Here an old version is as likely to be asked for as a new one.
	p.Experimental.SpanPolicyFunc = func([]byte) (pebble.SpanPolicy, []byte, error) {
		return pebble.SpanPolicy{
			DisableValueSeparationBySuffix: true,
			ValueStoragePolicy:             pebble.ValueStorageLowReadLatency,
		}, nil, nil
	}
	p.EventListener = &pebble.EventListener{
		BackgroundError: faults.background,
		DataCorruption:  func(info pebble.DataCorruptionInfo) { faults.corruption(info.Path, info.Details) },
	}
	return p
}

// settledCompression is for the last level, where nearly everything comes to lie
// and stays. Slots, hashes and signatures are random, so that a block shrinks by
// little, and a few percent are worth having: it is unpacked again only when the
// cache has lost it. The name is one that Pebble knows, for its tools; in rows a
// profile must do without MinLZ, or Pebble uses another.
func settledCompression() *sstable.CompressionProfile {
	return &sstable.CompressionProfile{
		Name:                sstable.ZstdCompression.Name,
		DataBlocks:          sstable.GoodCompression.DataBlocks,
		ValueBlocks:         sstable.GoodCompression.ValueBlocks,
		OtherBlocks:         sstable.SnappyCompression.OtherBlocks,
		MinReductionPercent: 1,
	}
}

// A pebbleLog is Pebble's logger. Pebble expects that Fatalf ends the process;
// here it ends writing instead (A5).
type pebbleLog struct {
	log    *slog.Logger
	faults *faults
}

func (l pebbleLog) Infof(format string, args ...any)  { l.write(format, args) }
func (l pebbleLog) Errorf(format string, args ...any) { l.write(format, args) }
func (l pebbleLog) Fatalf(format string, args ...any) {
	l.write(format, args)
	l.faults.add(fmt.Errorf(format, args...))
}

func (l pebbleLog) write(format string, args []any) {
	if l.log != nil && l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug("pebble", "text", fmt.Sprintf(format, args...))
	}
}
