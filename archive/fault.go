// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"glimpse/chain"
)

// faults remembers the first failure of a write, in the foreground or in
// Pebble's background work. What the disk holds is uncertain after one, so
// nothing more may be written (A5).
type faults struct {
	first  atomic.Pointer[error]
	raised chan struct{} // closed when first is set
}

func newFaults() *faults { return &faults{raised: make(chan struct{})} }

func (f *faults) add(err error) {
	if f.first.CompareAndSwap(nil, &err) {
		close(f.raised)
	}
}

func (f *faults) err() error {
	if err := f.first.Load(); err != nil {
		return *err
	}
	return nil
}

// try does something unless there was a fault, and notes one if it fails.
func (f *faults) try(doing string, do func() error) {
	if f.err() != nil {
		return
	}
	if err := do(); err != nil {
		f.add(fmt.Errorf("%s: %w", doing, err))
	}
}

func (f *faults) background(err error) {
	f.add(fmt.Errorf("background work: %w", storeError(err)))
}

func (f *faults) corruption(path string, err error) {
	f.add(fmt.Errorf("%w: file %s: %w", chain.ErrCorrupt, path, err))
}

// storeError marks what Pebble found to be corrupt as chain.ErrCorrupt.
func storeError(err error) error {
	if pebble.IsCorruptionError(err) {
		return fmt.Errorf("%w: %w", chain.ErrCorrupt, err)
	}
	return err
}
