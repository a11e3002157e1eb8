// SPDX-License-Identifier: Apache-2.0

package merkle_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"

	"glimpse/chain"
	"glimpse/merkle"
)

// unpaged returns the same nodes as they were stored before there were pages,
// each under its own key, and how many were in pages.
func unpaged(t *testing.T, m *sideMap) (plain *sideMap, leaves int) {
	t.Helper()
	plain = newSideMap()
	for key, value := range m.values {
		node, inside, err := merkle.DecodeStored(value)
		must(t, err)
		plain.values[key] = node
		if key == "r" {
			plain.values[key] = value
		}
		for i, leaf := range inside {
			if leaf != nil {
				plain.values[key+string([]byte{byte(i)})] = leaf
				leaves++
			}
		}
	}
	return plain, leaves
}

// A store from before there were pages is read, and goes on with them.
func TestTriesFromBeforePages(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			h, nodes := newHistory(seed), newSideMap()
			s := open(t, nodes)
			for n := range 20 {
				_, err := s.Apply(h.next(t))
				must(t, err)
				must(t, nodes.write(s.Commit(ref(n))))
			}
			old, leaves := unpaged(t, nodes)
			if leaves < 20 {
				t.Fatalf("got %d leaves in pages, want more to be of use", leaves)
			}
			s = open(t, old)
			must(t, s.Check(t.Context(), h.state))
			for n := 20; n < 60; n++ {
				_, err := s.Apply(h.next(t))
				must(t, err)
				must(t, old.write(s.Commit(ref(n))))
				must(t, s.Check(t.Context(), h.state))
			}
			before := maps.Clone(old.values)
			_, left := unpaged(t, old)
			again := newSideMap()
			at, root, _ := s.At()
			s, err := merkle.Rebuild(h.state, again, 0, at, again.write)
			must(t, err)
			if _, got, _ := s.At(); got != root {
				t.Errorf("rebuilt to %s, want %s", got, root)
			}
			plain, _ := unpaged(t, &sideMap{values: before})
			want, _ := unpaged(t, again)
			if !want.equal(plain.values) || left == 0 {
				t.Errorf("got %d nodes, %d in pages, want the %d of the rebuilt tries", len(plain.values), left, len(want.values))
			}
		})
	}
}

// What is stored of a few known slots, byte for byte.
func TestPageIsPinned(t *testing.T) {
	nodes := newSideMap()
	s := open(t, nodes)
	d := &chain.Diff{Accounts: []chain.AccountDiff{{Address: chain.Address{1}, Changed: true, Account: chain.Account{Exists: true}}}}
	for i := range byte(3) {
		d.Accounts[0].Slots = append(d.Accounts[0].Slots, chain.SlotDiff{Slot: chain.Slot{31: i}, Value: chain.Value{31: 7}})
	}
	_, err := s.Apply(d)
	must(t, err)
	must(t, nodes.write(s.Commit(ref(1))))
	// The hashes of the slots begin with 2, b and 4: three leaves in one branch.
	want := []byte{1, 0x08, 0x14, 0x08, 0x14}
	for _, i := range []byte{0, 2, 1} {
		hash := crypto.Keccak256(chain.Slot{31: i}.Bytes())
		hash[0] = 0x30 | hash[0]&0x0f // a leaf with an odd number of nibbles
		want = append(append(append(want, 34, 0x80+32), hash...), 7)
	}
	owner := crypto.Keccak256(d.Accounts[0].Address[:])
	if got := nodes.values["s"+string(owner)]; !bytes.Equal(got, want) {
		t.Errorf("page: got %x, want %x", got, want)
	}
	if len(nodes.values) != 3 { // with the account and the record
		t.Errorf("stored: got %d values, want 3", len(nodes.values))
	}
}

func TestDamagedPageIsRefused(t *testing.T) {
	leaf := append([]byte{34, 0x80 + 32}, make([]byte, 33)...)
	whole := append([]byte{1, 0, 3, 0, 1}, append(leaf, make([]byte, 32)...)...)
	if _, _, err := merkle.DecodeStored(whole); err != nil {
		t.Fatalf("whole: %v", err)
	}
	tests := []struct {
		name   string
		stored []byte
	}{
		{"only the mark", []byte{1}},
		{"cut in a hash", whole[:len(whole)-1]},
		{"cut in a leaf", whole[:20]},
		{"cut before its children", whole[:5]},
		{"longer than it says", append(bytes.Clone(whole), 0)},
		{"leaf of no bytes", []byte{1, 0, 1, 0, 1, 0}},
		{"leaf of more bytes than there are", binary.AppendUvarint([]byte{1, 0, 1, 0, 1}, 1<<63)},
		{"leaf that no node can be", append(binary.AppendUvarint([]byte{1, 0, 1, 0, 1}, 1<<16), make([]byte, 1<<16)...)},
		{"length without end", append([]byte{1, 0, 1, 0, 1}, bytes.Repeat([]byte{0xff}, 20)...)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, _, err := merkle.DecodeStored(tt.stored); !errors.Is(err, chain.ErrCorrupt) {
				t.Errorf("got %v, want ErrCorrupt", err)
			}
		})
	}
}

// Every byte of what is stored is vouched for by the hash above it.
func TestDamagedByteIsFound(t *testing.T) {
	h, nodes := newHistory(3), newSideMap()
	s := open(t, nodes)
	for range 20 {
		_, err := s.Apply(h.next(t))
		must(t, err)
	}
	must(t, nodes.write(s.Commit(ref(1))))
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
