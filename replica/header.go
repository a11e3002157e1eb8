// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/chain"
)

// A lateField is a field of a header that some fork has added. In RLP one can be
// missing only where all after it are. Headers of blocks that are not sealed have
// holes: a feed does not carry what can only be known at the end.
type lateField struct {
	known func(*types.Header) bool
	zero  func(*types.Header) bool // also reports whether the field was zero
	clear func(*types.Header)
}

// lateFields returns all of them in their order; the first is the lowest bit of the
// holes.
func lateFields() []lateField {
	hash := func(of func(*types.Header) **chain.Hash) lateField {
		return lateField{
			func(h *types.Header) bool { return *of(h) != nil },
			func(h *types.Header) bool {
				was := *of(h)
				*of(h) = new(chain.Hash)
				return was != nil && *was == chain.Hash{}
			},
			func(h *types.Header) { *of(h) = nil },
		}
	}
	number := func(of func(*types.Header) **uint64) lateField {
		return lateField{
			func(h *types.Header) bool { return *of(h) != nil },
			func(h *types.Header) bool {
				was := *of(h)
				*of(h) = new(uint64)
				return was != nil && *was == 0
			},
			func(h *types.Header) { *of(h) = nil },
		}
	}
	return []lateField{
		{
			func(h *types.Header) bool { return h.BaseFee != nil },
			func(h *types.Header) bool {
				was := h.BaseFee
				h.BaseFee = new(big.Int)
				return was != nil && was.Sign() == 0
			},
			func(h *types.Header) { h.BaseFee = nil },
		},
		hash(func(h *types.Header) **chain.Hash { return &h.WithdrawalsHash }),
		number(func(h *types.Header) **uint64 { return &h.BlobGasUsed }),
		number(func(h *types.Header) **uint64 { return &h.ExcessBlobGas }),
		hash(func(h *types.Header) **chain.Hash { return &h.ParentBeaconRoot }),
		hash(func(h *types.Header) **chain.Hash { return &h.RequestsHash }),
		hash(func(h *types.Header) **chain.Hash { return &h.BlockAccessListHash }),
		number(func(h *types.Header) **uint64 { return &h.SlotNumber }),
	}
}

// appendHeader writes which fields are holes, and the header with zeros in them.
func appendHeader(dst []byte, h *types.Header) ([]byte, error) {
	h = types.CopyHeader(h)
	var holes byte
	fields := lateFields()
	later := false
	for i := len(fields) - 1; i >= 0; i-- {
		switch f := fields[i]; {
		case f.known(h):
			later = true
		case later:
			f.zero(h)
			holes |= 1 << i
		}
	}
	data, err := rlp.EncodeToBytes(h)
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	return appendBytes(append(dst, holes), data), nil
}

func (r *reader) header() *types.Header {
	h := new(types.Header)
	holes := r.byte()
	raw := r.take(r.count(1))
	if r.err != nil {
		return h
	}
	if err := rlp.DecodeBytes(raw, h); err != nil {
		r.fail("header: %v", err)
		return h
	}
	if h.Number == nil || !h.Number.IsUint64() || h.Difficulty == nil {
		r.fail("header without a number")
	}
	fields := lateFields()
	later := false
	for i := len(fields) - 1; i >= 0; i-- {
		f := fields[i]
		if holes&(1<<i) == 0 {
			later = later || f.known(h)
			continue
		}
		if !later || !f.zero(h) {
			r.fail("header with a hole %d that is none", i)
		}
		f.clear(h)
	}
	return h
}
