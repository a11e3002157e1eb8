// SPDX-License-Identifier: Apache-2.0

package opstack

import (
	"encoding/binary"
	"fmt"

	"glimpse/evm"
)

// attributesSelector begins the data of the first deposit of each block since
// Jovian, whose last two bytes are the footprint's scalar.
const attributesSelector = "\x3d\xb6\xbe\x2b"

const (
	attributesIsthmus = 176 // bytes
	attributesJovian  = 178
)

// A footprint is what a block takes up on the chain below, in units of gas.
// Headers carry it since Jovian, in place of the blob gas used.
type footprint struct {
	scalar uint64
	used   uint64

	// none says that the block brings Jovian, and can have no transactions that
	// would count.
	none bool
}

// begin looks at the first deposit of a block.
func (f *footprint) begin(attributes []byte) error {
	switch {
	case len(attributes) == attributesIsthmus:
		f.none = true
	case len(attributes) >= attributesJovian && string(attributes[:4]) == attributesSelector:
		f.scalar = uint64(binary.BigEndian.Uint16(attributes[attributesJovian-2:]))
	default:
		return fmt.Errorf("%w: block attributes of %d bytes in an unknown form", evm.ErrUnsupported, len(attributes))
	}
	return nil
}

// add takes in a signed transaction of an estimated size.
func (f *footprint) add(size uint64) { f.used += size / sizeUnit * f.scalar }
