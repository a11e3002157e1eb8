// SPDX-License-Identifier: Apache-2.0

package flashblock_test

import (
	"testing"

	"glimpse/chain"
	"glimpse/flashblock"
)

// The event table: what is there, what comes, and where it belongs. Block 10 is
// sealed. Hashes and payload ids are single letters.
func TestPlace(t *testing.T) {
	hash := func(letter byte) chain.Hash { return chain.Hash{letter} }
	a := flashblock.Build{Payload: flashblock.PayloadID{'a'}, Parent: hash('L'), Last: 3}
	known := a
	known.Hash = hash('N')
	frozen := a
	frozen.Frozen = true
	above := flashblock.Build{Payload: flashblock.PayloadID{'b'}, Parent: hash('N'), Last: 1}

	tests := []struct {
		name    string
		builds  []flashblock.Build
		number  chain.Number
		payload byte
		index   uint64
		parent  byte // of index 0
		held    bool
		void    bool
		want    flashblock.Verdict
	}{
		{"index 0 on the sealed head", nil, 11, 'a', 0, 'L', false, false, flashblock.NewBlock},
		{"index 0 on another block of the head's height", nil, 11, 'a', 0, 'M', false, false, flashblock.Early},
		{"index 0 before its parent is here", nil, 12, 'a', 0, 'N', false, false, flashblock.Early},
		{"a later index before index 0", nil, 11, 'a', 2, 0, false, false, flashblock.Gap},
		{"a later index before the parent", nil, 12, 'a', 2, 0, false, false, flashblock.Early},
		{"a piece of the sealed block", nil, 10, 'a', 4, 0, false, false, flashblock.Stale},
		{"index 0 of the sealed block", nil, 10, 'a', 0, 'K', false, false, flashblock.Stale},
		{"a piece of a block long sealed", nil, 3, 'a', 4, 0, false, false, flashblock.Stale},

		{"the next index", []flashblock.Build{a}, 11, 'a', 4, 0, false, false, flashblock.Extend},
		{"the last index again", []flashblock.Build{a}, 11, 'a', 3, 0, true, false, flashblock.Duplicate},
		{"index 0 again", []flashblock.Build{a}, 11, 'a', 0, 'L', true, false, flashblock.Duplicate},
		{"a lower index again", []flashblock.Build{a}, 11, 'a', 1, 0, false, false, flashblock.Duplicate},
		{"an index too far", []flashblock.Build{a}, 11, 'a', 5, 0, false, false, flashblock.Gap},
		{"a waiting piece again", []flashblock.Build{frozen}, 11, 'a', 5, 0, true, false, flashblock.Duplicate},
		{"the missing index", []flashblock.Build{frozen}, 11, 'a', 4, 0, false, false, flashblock.Extend},

		{"another build of the block", []flashblock.Build{a}, 11, 'c', 0, 'L', false, false, flashblock.Replace},
		{"another build on another parent", []flashblock.Build{a}, 11, 'c', 0, 'M', false, false, flashblock.Early},
		{"a later index of another build", []flashblock.Build{a}, 11, 'c', 4, 0, false, false, flashblock.Gap},
		{"a piece of a replaced build", []flashblock.Build{a}, 11, 'z', 4, 0, false, true, flashblock.Stale},
		{"index 0 of a replaced build", []flashblock.Build{a}, 11, 'z', 0, 'L', false, true, flashblock.Stale},

		{"the next block before this one is sealed", []flashblock.Build{a}, 12, 'b', 0, 'N', false, false, flashblock.NewBlock},
		{"the next block on the hash that this one has", []flashblock.Build{known}, 12, 'b', 0, 'N', false, false, flashblock.NewBlock},
		{"the next block on more than is here", []flashblock.Build{known}, 12, 'b', 0, 'O', false, false, flashblock.Early},
		{"the next block after a gap in this one", []flashblock.Build{frozen}, 12, 'b', 0, 'N', false, false, flashblock.Early},
		{"the next block without its index 0", []flashblock.Build{a}, 12, 'b', 1, 0, false, false, flashblock.Gap},
		{"a block gap", []flashblock.Build{a}, 13, 'b', 0, 'O', false, false, flashblock.Early},

		{"the next index of the upper block", []flashblock.Build{a, above}, 12, 'b', 2, 0, false, false, flashblock.Extend},
		{"a late index of the lower block", []flashblock.Build{a, above}, 11, 'a', 4, 0, false, false, flashblock.Extend},
		{"another build of the lower block", []flashblock.Build{a, above}, 11, 'c', 0, 'L', false, false, flashblock.Replace},
		{"another build of the upper block", []flashblock.Build{a, above}, 12, 'c', 0, 'N', false, false, flashblock.Replace},
		{"a third block", []flashblock.Build{a, above}, 13, 'd', 0, 'P', false, false, flashblock.NewBlock},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := &flashblock.Message{Number: tt.number, Payload: flashblock.PayloadID{tt.payload}, Index: tt.index}
			if tt.index == 0 {
				m.Base = &flashblock.Base{ParentHash: hash(tt.parent)}
			}
			s := flashblock.Standing{Latest: chain.Ref{Number: 10, Hash: hash('L')}, Builds: tt.builds, Held: tt.held, Void: tt.void}
			if got := flashblock.Place(s, m); got != tt.want {
				t.Errorf("Place(%s) = %v, want %v", m.Position(), got, tt.want)
			}
		})
	}
}
