// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"math"

	"github.com/ethereum/go-ethereum/common"
)

// Address, Hash, Slot and Value are go-ethereum's own types under the names
// that say what they are used for. A Slot is the key of a storage slot, a
// Value the 32 bytes in it.
type (
	Address = common.Address
	Hash    = common.Hash
	Slot    = common.Hash
	Value   = common.Hash
)

// A Number is the height of a block; genesis is 0.
type Number uint64

// MaxNumber is the largest number that a caller may name. Clients keep block
// numbers in signed 64-bit integers.
const MaxNumber Number = math.MaxInt64

// A Ref names one block: two blocks of one height are told apart by hash.
type Ref struct {
	Number Number
	Hash   Hash
}

// String returns the number and the whole hash, "12 (0x…)".
func (r Ref) String() string {
	return fmt.Sprintf("%d (%s)", r.Number, r.Hash)
}
