// SPDX-License-Identifier: Apache-2.0

package archivetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// ErrDisk is the error of every operation that a Disk was told to fail.
var ErrDisk error = errorfs.ErrInjected

// A Disk is a file system in memory that fails and crashes on request. Give FS
// to archive.Options. It is safe for concurrent use.
type Disk struct {
	FS vfs.FS

	mem                    *vfs.MemFS
	failReads, failsWrites atomic.Bool
	writesLeft             atomic.Pointer[atomic.Int64]
	failPath               atomic.Pointer[string]
	stall                  atomic.Pointer[stall]
}

// A stall holds writes up.
type stall struct {
	reached chan struct{} // closed when the first write is held up
	once    sync.Once
	over    chan struct{}
}

// NewDisk returns an empty Disk that works.
func NewDisk() *Disk { return wrap(vfs.NewCrashableMem()) }

func wrap(mem *vfs.MemFS) *Disk {
	d := &Disk{mem: mem}
	d.FS = errorfs.Wrap(mem, errorfs.InjectorFunc(d.inject))
	return d
}

func (d *Disk) inject(op errorfs.Op) error {
	kind := op.Kind.ReadOrWrite()
	if s := d.stall.Load(); s != nil && kind == errorfs.OpIsWrite {
		s.once.Do(func() { close(s.reached) })
		<-s.over
	}
	if path := d.failPath.Load(); path != nil && kind == errorfs.OpIsWrite &&
		strings.HasPrefix(op.Path, *path+"/") && op.Kind != errorfs.OpRemove {
		return ErrDisk
	}
	if left := d.writesLeft.Load(); left != nil && kind == errorfs.OpIsWrite &&
		op.Kind != errorfs.OpFileClose && left.Add(-1) < 0 {
		return ErrDisk
	}
	switch {
	case kind == errorfs.OpIsRead && d.failReads.Load(),
		kind == errorfs.OpIsWrite && d.failsWrites.Load() && op.Kind != errorfs.OpFileClose:
		return ErrDisk
	}
	return nil
}

// FailReads makes every read fail from now on, or none.
func (d *Disk) FailReads(fail bool) { d.failReads.Store(fail) }

// FailWrites makes every write fail from now on, or none.
func (d *Disk) FailWrites(fail bool) { d.failsWrites.Store(fail) }

// FailWritesAfter makes n more writes succeed and all after them fail, so that
// the Disk stays as it is in the middle of something.
func (d *Disk) FailWritesAfter(n int) {
	left := new(atomic.Int64)
	left.Store(int64(n))
	d.writesLeft.Store(left)
}

// FailWritesTo makes every write below a directory fail from now on but for
// removals, or none where dir is empty.
func (d *Disk) FailWritesTo(dir string) {
	if dir == "" {
		d.failPath.Store(nil)
		return
	}
	d.failPath.Store(&dir)
}

// StallWrites makes every write wait from now on, until resume is called. The
// channel is closed when one does.
func (d *Disk) StallWrites() (reached <-chan struct{}, resume func()) {
	s := &stall{reached: make(chan struct{}), over: make(chan struct{})}
	d.stall.Store(s)
	return s.reached, func() {
		d.stall.Store(nil)
		close(s.over)
	}
}

// Crash returns the Disk as the machine would find it after losing power now:
// what was synced, and a random part of what was not.
func (d *Disk) Crash(rng *rand.Rand) *Disk {
	return wrap(d.mem.CrashClone(vfs.CrashCloneCfg{
		UnsyncedDataPercent: rng.IntN(101),
		RNG:                 rng,
	}))
}

// Damage flips a byte in every file of dir whose name ends in suffix, at this
// part of its length.
func (d *Disk) Damage(dir, suffix string, part float64) error {
	names, err := d.mem.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasSuffix(name, suffix) {
			continue
		}
		if err := d.flip(d.mem.PathJoin(dir, name), part); err != nil {
			return fmt.Errorf("damage %s: %w", name, err)
		}
	}
	return nil
}

func (d *Disk) flip(path string, part float64) error {
	f, err := d.mem.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	at := int64(part * float64(info.Size()))
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		return errors.Join(err, f.Close())
	}
	b[0] ^= 0xff
	_, err = f.WriteAt(b, at)
	return errors.Join(err, f.Sync(), f.Close())
}
