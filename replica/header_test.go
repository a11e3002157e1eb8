// SPDX-License-Identifier: Apache-2.0

package replica_test

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/replica"
)

func pendingOf(h *types.Header) *replica.Event {
	return event(&replica.Pending{Parent: ref(7, 7), Blocks: []replica.Part{{Header: h, Layers: []replica.Layer{{Diff: new(chain.Diff)}}}}})
}

// A header of a block that is not sealed arrives with the same fields known and not
// known, whichever they are.
func TestHeadersWithHolesArriveAsTheyWere(t *testing.T) {
	seed := rand.Uint64()
	t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
		r := rand.New(rand.NewPCG(seed, 0))
		for range 500 {
			want := &types.Header{Number: big.NewInt(8), Difficulty: new(big.Int), Extra: []byte{1}}
			if r.IntN(4) > 0 {
				want.BaseFee = big.NewInt(r.Int64N(2))
			}
			for _, field := range []**chain.Hash{&want.WithdrawalsHash, &want.ParentBeaconRoot, &want.RequestsHash, &want.BlockAccessListHash} {
				if r.IntN(2) == 0 {
					*field = &chain.Hash{byte(r.IntN(2))} // also one that is zero and known
				}
			}
			for _, field := range []**uint64{&want.BlobGasUsed, &want.ExcessBlobGas, &want.SlotNumber} {
				if r.IntN(2) == 0 {
					n := r.Uint64N(2)
					*field = &n
				}
			}
			e, err := replica.DecodeEvent(encode(t, pendingOf(want)))
			if err != nil {
				t.Fatalf("%v of %+v", err, want)
			}
			if got := e.Body.(*replica.Pending).Blocks[0].Header; !reflect.DeepEqual(got, want) {
				t.Fatalf("got\n%+v, want\n%+v", got, want)
			}
		}
	})
}

func TestHolesThatAreNoneAreRefused(t *testing.T) {
	one, zero := chain.Hash{1}, chain.Hash{}
	tests := []struct {
		name   string
		header types.Header
		holes  byte
	}{
		{"a field that is not zero", types.Header{BaseFee: big.NewInt(1), WithdrawalsHash: &one, BlobGasUsed: new(uint64)}, 1 << 1},
		{"the last field", types.Header{BaseFee: big.NewInt(1), WithdrawalsHash: &zero}, 1 << 1},
		{"a field that is not there", types.Header{BaseFee: big.NewInt(1), WithdrawalsHash: &one}, 1 << 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.header.Number, tt.header.Difficulty = big.NewInt(8), new(big.Int)
			data := encode(t, pendingOf(&tt.header))
			// The holes follow version, kind, chain, epoch, order, parent, base,
			// time, reason and the number of parts.
			at := len(encode(t, event(&replica.Pending{Parent: ref(7, 7)})))
			if data[at] != 0 {
				t.Fatalf("holes are %d, want none", data[at])
			}
			data[at] = tt.holes
			if e, err := replica.DecodeEvent(data); !errors.Is(err, replica.ErrEvent) {
				t.Errorf("DecodeEvent = %v, %v, want ErrEvent", e, err)
			}
		})
	}
}
