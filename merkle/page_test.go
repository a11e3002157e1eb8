// SPDX-License-Identifier: Apache-2.0

package merkle_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"

	"glimpse/chain"
	"glimpse/merkle"
)

// What is stored of a few known slots, byte for byte.
func TestPageIsPinned(t *testing.T) {
	full := chain.Value{0: 0x80, 31: 7}
	tests := []struct {
		name  string
		value chain.Value
		front []byte
		want  []byte // of the value
	}{
		{"slots of 32 bytes", full, []byte{0, 0x08, 0x14}, full[:]},
		{"slots of one byte", chain.Value{31: 7}, []byte{2, 0x08, 0x14, 1, 1, 1}, []byte{7}},
		{"slots of one byte that is an item by itself", chain.Value{31: 0x87}, []byte{2, 0x08, 0x14, 1, 1, 1}, []byte{0x87}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			nodes := newSideMap()
			s := open(t, nodes)
			d := &chain.Diff{Accounts: []chain.AccountDiff{{Address: chain.Address{1}, Changed: true, Account: chain.Account{Exists: true}}}}
			for i := range byte(3) {
				d.Accounts[0].Slots = append(d.Accounts[0].Slots, chain.SlotDiff{Slot: chain.Slot{31: i}, Value: tt.value})
			}
			_, err := s.Apply(d)
			must(t, err)
			must(t, nodes.write(s.Commit(ref(1))))
			// The hashes of the slots begin with 29, 40 and b1: three leaves in one
			// branch, in another order than the slots.
			want := append(bytes.Clone(tt.front), 0x90, 0x10)
			for _, i := range []byte{0, 2, 1} {
				hash := crypto.Keccak256(chain.Slot{31: i}.Bytes())
				want = append(append(want, hash[1:]...), tt.want...)
			}
			owner := crypto.Keccak256(d.Accounts[0].Address[:])
			if got := nodes.values["s"+string(owner)]; !bytes.Equal(got, want) {
				t.Errorf("page: got %x, want %x", got, want)
			}
			if len(nodes.values) != 3 { // with the account and the record
				t.Errorf("stored: got %d values, want 3", len(nodes.values))
			}
		})
	}
}

// A branch of leaves with all kinds of values is stored in one piece at every
// depth, and read back as it was.
func TestPageHoldsEveryLeaf(t *testing.T) {
	account := types.StateAccount{Nonce: 1 << 63, Balance: new(uint256.Int).SetAllOne(), Root: chain.Hash{1}, CodeHash: make([]byte, 32)}
	values := [][]byte{
		{1}, {0x7f}, {0x80}, {0x81, 0x80}, {0x82, 1, 2}, // the third is an empty string
		append([]byte{0x80 + 31}, bytes.Repeat([]byte{7}, 31)...), append([]byte{0x80 + 32}, bytes.Repeat([]byte{7}, 32)...),
		append([]byte{0x80 + 33}, bytes.Repeat([]byte{7}, 33)...), {0x80 + 32}, {0x81, 0x01}, {0xc0}, encode(t, &account), bytes.Repeat([]byte{9}, 223),
	}
	for depth := range 64 {
		t.Run(fmt.Sprintf("depth %d", depth), func(t *testing.T) {
			items, leaves := make([][]byte, 17), [16][]byte{}
			for i, value := range values {
				leaves[i] = encode(t, [][]byte{hexPrefix(63-depth, byte(i)), value})
				items[i] = crypto.Keccak256(leaves[i])
			}
			items[len(values)] = bytes.Repeat([]byte{5}, 32)
			node := encode(t, items)
			stored := merkle.EncodeStored(node, leaves, depth)
			if len(stored) >= len(bytes.Join(leaves[:], node)) {
				t.Errorf("got %d bytes, want fewer than without a page", len(stored))
			}
			gotNode, gotLeaves, err := merkle.DecodeStored(stored, depth)
			must(t, err)
			if !bytes.Equal(gotNode, node) || !reflect.DeepEqual(gotLeaves, leaves) {
				t.Errorf("got %x with %x, want %x with %x", gotNode, gotLeaves, node, leaves)
			}
		})
	}
}

// What a page cannot hold has a key of its own.
func TestNodesThatPagesDoNotHold(t *testing.T) {
	const depth = 4
	slot := append([]byte{0x80 + 32}, make([]byte, 32)...)
	key := hexPrefix(59, 1)
	tests := []struct {
		name string
		node []byte
		want bool
	}{
		{"a leaf", encode(t, [][]byte{key, slot}), true},
		{"a leaf with the longest value", encode(t, [][]byte{key, make([]byte, 223)}), true},
		{"a leaf with a longer value", encode(t, [][]byte{key, make([]byte, 224)}), false},
		{"a leaf without a value", encode(t, [][]byte{key, {}}), false},
		{"a leaf of another depth", encode(t, [][]byte{hexPrefix(57, 1), slot}), false},
		{"a leaf with a nibble less", encode(t, [][]byte{hexPrefix(58, 1), slot}), false},
		{"a leaf with other flags", encode(t, [][]byte{append([]byte{0x71}, key[1:]...), slot}), false},
		{"a leaf with a third item", encode(t, [][]byte{key, slot, {}}), false},
		{"a leaf with a byte after it", append(encode(t, [][]byte{key, slot}), 0), false},
		{"an extension", encode(t, [][]byte{append([]byte{0x11}, key[1:]...), slot}), false},
		{"a branch", encode(t, make([][]byte, 17)), false},
		{"a leaf cut short", encode(t, [][]byte{key, slot})[:60], false},
		{"nothing", nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := merkle.FitsPage(tt.node, depth); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	if merkle.FitsPage(tests[0].node, depth+1) {
		t.Error("got a leaf with a nibble more into a page")
	}
}

// hexPrefix is the key of a leaf that holds that many nibbles of its path.
func hexPrefix(nibbles int, nibble byte) []byte {
	key := append([]byte{0x20}, bytes.Repeat([]byte{nibble<<4 | nibble}, nibbles/2)...)
	if nibbles%2 != 0 {
		key[0] = 0x30 | nibble
	}
	return key
}

func encode(t testing.TB, value any) []byte {
	t.Helper()
	encoded, err := rlp.EncodeToBytes(value)
	must(t, err)
	return encoded
}

func TestDamagedPageIsRefused(t *testing.T) {
	const depth = 4 // 59 nibbles are left of a leaf's path
	page := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	hash, path, slot := bytes.Repeat([]byte{7}, 32), make([]byte, 29), make([]byte, 32)
	whole := page([]byte{3, 0, 7, 0, 5, 32, 1, 0x12}, path, slot, hash, path, slot[:1])
	if _, _, err := merkle.DecodeStored(whole, depth); err != nil {
		t.Fatalf("whole: %v", err)
	}
	noLeaves := page([]byte{1, 0, 3, 0, 0}, hash, hash)
	branch, _, err := merkle.DecodeStored(noLeaves, depth)
	must(t, err)
	tests := []struct {
		name   string
		stored []byte
	}{
		{"longer than it says", page(whole, []byte{0})},
		{"an unknown form", page([]byte{4, 0, 1, 0x10}, path, slot)},
		{"leaves that are no children", page([]byte{1, 0, 1, 0, 3, 0x11}, path, slot)},
		{"leaves named though all are", page([]byte{1, 0, 1, 0, 1, 0x10}, path, slot)},
		{"sizes that go without saying", page([]byte{2, 0, 1, 32, 0x10}, path, slot)},
		{"sizes of no leaves", page([]byte{3, 0, 3, 0, 0}, hash, hash)},
		{"a leaf without a value", page([]byte{2, 0, 1, 0, 0x10}, path)},
		{"a nibble of no leaf", page([]byte{0, 0, 1, 0x11}, path, slot)},
		{"a slot that is not stored as one", page([]byte{2, 0, 1, 33, 0x10}, path, []byte{7})},
		{"a long slot that is not stored as one", page([]byte{2, 0, 1, 65, 0x10}, path, []byte{0x80 + 32}, slot)},
		{"a child without a hash", page([]byte{1, 0, 3, 0, 0}, hash, make([]byte, 32))},
		{"a branch as the node that it is", branch},
	}
	for i := range len(whole) - 1 {
		tests = append(tests, struct {
			name   string
			stored []byte
		}{fmt.Sprintf("cut after %d bytes", i+1), whole[:i+1]})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, _, err := merkle.DecodeStored(tt.stored, depth); !errors.Is(err, chain.ErrCorrupt) {
				t.Errorf("got %v, want ErrCorrupt", err)
			}
		})
	}
	if _, _, err := merkle.DecodeStored(noLeaves, 64); !errors.Is(err, chain.ErrCorrupt) {
		t.Errorf("got %v below the end of a key, want ErrCorrupt", err)
	}
}

// Whatever is accepted is what would be stored for the same nodes.
func FuzzDecodeStored(f *testing.F) {
	_, nodes := stored(f, newHistory(5).several(f, 5)...)
	for key, value := range nodes.values {
		if key != "r" {
			f.Add(value, uint8(depth(key)))
		}
	}
	f.Add([]byte{1, 0, 1, 0, 0}, uint8(63))
	f.Fuzz(func(t *testing.T, stored []byte, depth uint8) {
		node, leaves, err := merkle.DecodeStored(stored, int(depth))
		if err != nil {
			return
		}
		if again := merkle.EncodeStored(node, leaves, int(depth)); !bytes.Equal(again, stored) {
			t.Errorf("accepted %x at depth %d, which is stored as %x", stored, depth, again)
		}
	})
}

// depth is how many nibbles the path has in a key.
func depth(key string) int {
	if key[0] == 's' {
		return len(key) - 33
	}
	return len(key) - 1
}

// Every byte of what is stored is vouched for by the hash above it.
func TestDamagedByteIsFound(t *testing.T) {
	h := newHistory(3)
	_, nodes := stored(t, h.several(t, 20)...)
	for key, value := range nodes.values {
		if key == "r" {
			continue
		}
		for at := 0; at < len(value); at += 7 {
			damaged := bytes.Clone(value)
			damaged[at] ^= 0x10
			nodes.values[key] = damaged
			if err := open(t, nodes).Check(t.Context(), h.state); err == nil {
				t.Fatalf("byte %d of %x: got no error", at, key)
			}
		}
		nodes.values[key] = value
	}
}
