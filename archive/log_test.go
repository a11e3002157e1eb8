// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"glimpse/archive"
)

// A log that ends early is taken for damage unless it is the last one, so after
// a fault no other may follow it.
func TestNothingOfTheLogReachesTheDiskAfterAFault(t *testing.T) {
	mem := vfs.NewMem()
	if err := mem.MkdirAll("db/log", 0o755); err != nil {
		t.Fatal(err)
	}
	fs, raise := archive.GuardLog(mem, "db/log")
	create := func(name string) vfs.File {
		f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first := create("db/log/1.log")
	write := func(f vfs.File) {
		_, err := f.Write([]byte("12345"))
		if err := errors.Join(err, f.Sync(), f.SyncData()); err != nil {
			t.Errorf("guarded log: got %v, want no error", err)
		}
	}
	write(first)
	raise(errors.New("fault"))
	write(first)
	second := create("db/log/2.log")
	write(second)
	other := create("db/000003.sst")
	write(other)
	if err := errors.Join(first.Close(), second.Close(), other.Close()); err != nil {
		t.Error(err)
	}
	info, err := mem.Stat("db/log/1.log")
	if err != nil || info.Size() != 5 {
		t.Errorf("first log: got %v, %v, want the 5 bytes from before the fault", info, err)
	}
	if _, err := mem.Stat("db/log/2.log"); err == nil {
		t.Error("second log: got a file, want none")
	}
	if _, err := mem.Stat("db/000003.sst"); err != nil {
		t.Errorf("file beside the log: got %v, want it there", err)
	}
}
