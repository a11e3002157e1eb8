// SPDX-License-Identifier: Apache-2.0

package merkle_test

import (
	"encoding/binary"
	"testing"

	"glimpse/chain"
	"glimpse/merkle"
)

// slots returns a Diff that sets count slots of one account.
func slots(count, value uint64) *chain.Diff {
	a := chain.AccountDiff{Address: chain.Address{1}, Changed: true, Account: chain.Account{Exists: true}}
	for n := range count {
		s := chain.SlotDiff{Slot: chain.Slot{0: 1}, Value: chain.Value{0: 1}}
		binary.BigEndian.PutUint64(s.Slot[24:], n)
		binary.BigEndian.PutUint64(s.Value[24:], value)
		a.Slots = append(a.Slots, s)
	}
	return &chain.Diff{Accounts: []chain.AccountDiff{a}}
}

// Every stored value of a trie of 10,000 slots, decoded.
func BenchmarkDecode(b *testing.B) {
	_, nodes := stored(b, slots(10000, 1))
	delete(nodes.values, "r")
	b.ReportAllocs()
	for b.Loop() {
		for key, value := range nodes.values {
			if _, _, err := merkle.DecodeStored(value, depth(key)); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10000, "ns/slot")
}

// A block that writes 200 slots of a trie of 10,000, read from the store.
func BenchmarkApply(b *testing.B) {
	s, nodes := stored(b, slots(10000, 1))
	b.ReportAllocs()
	for n := 2; b.Loop(); n++ {
		_, err := s.Apply(slots(200, uint64(n)))
		must(b, err)
		must(b, nodes.write(s.Commit(ref(n))))
	}
}
