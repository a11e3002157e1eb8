// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"encoding/binary"
	"sync/atomic"

	"glimpse/chain"
)

const wipeFilterBits = 20

// A wipeFilter says which addresses may ever have been wiped, so that all
// others are spared the second seek of A3. It errs only towards a needless
// seek, and its bits are never cleared: a Reader of any age can use it.
type wipeFilter [1 << wipeFilterBits / 64]atomic.Uint64

// add must come before the wipe is visible to any Reader.
func (f *wipeFilter) add(a chain.Address) {
	word, bit := f.place(a)
	word.Or(bit)
}

func (f *wipeFilter) mayHold(a chain.Address) bool {
	word, bit := f.place(a)
	return word.Load()&bit != 0
}

func (f *wipeFilter) place(a chain.Address) (word *atomic.Uint64, bit uint64) {
	const golden = 0x9e3779b97f4a7c15
	h := binary.LittleEndian.Uint64(a[12:]) * golden >> (64 - wipeFilterBits)
	return &f[h/64], 1 << (h % 64)
}
